// A filter applies as soon as it is chosen, a page prints itself, a command is copied, and a comment outlives the session.
"use strict";
for (const form of document.querySelectorAll("form[data-auto]")) form.addEventListener("change", () => form.requestSubmit());
for (const button of document.querySelectorAll("[data-print]")) button.addEventListener("click", () => window.print());
// What is sent is kept until the page of the notes answers, so that who was logged out finds it again after the login.
for (const text of document.querySelectorAll("form[method=post] textarea")) {
  const key = `kafka-sla-comment ${location.pathname}`;
  if (location.hash === "#notes") sessionStorage.removeItem(key);
  text.value ||= sessionStorage.getItem(key) || "";
  text.form.addEventListener("submit", () => sessionStorage.setItem(key, text.value));
}
// Where the browser keeps the clipboard closed (plain HTTP, some frames), the text is selected for Ctrl+C instead.
for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", async () => {
  const code = button.parentElement.querySelector("code"), note = button.parentElement.querySelector(".copied");
  try {
    await navigator.clipboard.writeText(code.textContent);
    note.textContent = "Copied";
  } catch {
    window.getSelection().selectAllChildren(code);
    note.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
  }
});
