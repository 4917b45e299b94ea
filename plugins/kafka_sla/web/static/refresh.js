// A page that is left open stays true: what it shows is fetched anew every minute, unless somebody is busy in it.
"use strict";
(() => {
  const EVERY = 60_000;
  const banner = document.getElementById("offline");
  const busy = () => document.hidden || document.activeElement?.closest("input, select, button, [data-live]") || !window.getSelection().isCollapsed;

  const refresh = async () => {
    if (busy()) return;
    try {
      const answer = await fetch(window.location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const mine = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
        if (!mine) continue;
        part.replaceChildren(...document.importNode(mine, true).childNodes);
        window.kafkaSla.times.localize(part);
      }
      banner.hidden = true;
    } catch (error) {
      banner.textContent = `This page could not be refreshed (${error.message}): it shows what was true earlier.`;
      banner.hidden = false;
    }
  };
  window.setInterval(refresh, EVERY);
  document.addEventListener("kafka-sla-refresh", refresh);
})();
