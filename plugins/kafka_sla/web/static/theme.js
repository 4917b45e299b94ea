// Airflow's theme, where this page is inside Airflow's or was opened beside it; else the system's. Runs before the page is drawn.
"use strict";
(() => {
  const root = document.documentElement;
  const outer = () => {
    try { return window.parent !== window ? window.parent.document.documentElement : null; } catch { return null; }
  };
  const set = () => {
    const frame = outer();
    const theme = frame ? ["dark", "light"].find((name) => frame.classList.contains(name)) : localStorage.getItem("theme");
    if (theme === "dark" || theme === "light") root.dataset.theme = theme; else delete root.dataset.theme;
    document.dispatchEvent(new CustomEvent("themechange"));
  };
  set();
  const frame = outer();
  if (frame) new MutationObserver(set).observe(frame, { attributes: true, attributeFilter: ["class"] });
  window.addEventListener("storage", (event) => { if (event.key === "theme") set(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", set);
})();
