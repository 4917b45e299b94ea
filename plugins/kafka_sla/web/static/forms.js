// A filter applies as soon as it is chosen, and a page prints itself.
"use strict";
for (const form of document.querySelectorAll("form[data-auto]")) form.addEventListener("change", () => form.requestSubmit());
for (const button of document.querySelectorAll("[data-print]")) button.addEventListener("click", () => window.print());
