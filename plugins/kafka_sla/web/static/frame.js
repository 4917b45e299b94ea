// Inside Airflow's frame, links to Airflow's own pages open in the whole window: the frame alone may not navigate it.
"use strict";
(() => {
  if (window.parent === window) return;
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-airflow]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const outside = window.parent.document.createElement("a");
    outside.href = link.href;
    outside.click();
  });
})();
