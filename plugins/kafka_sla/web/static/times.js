// Times as their reader has them: in the time zone that Airflow's pages are set to, else the browser's; UTC and the distance from now are in the title. Without JavaScript all is UTC, and says so.
"use strict";
window.kafkaSla = window.kafkaSla || {};
(() => {
  const UTC_TEXT = /\b(\d{4}-\d\d-\d\d) (\d\d:\d\d(?::\d\d)?) UTC\b/g;
  const LEFT_ALONE = "script, style, code, pre, textarea, option, time, svg, [data-utc]";

  const chosen = () => { try { return JSON.parse(localStorage.getItem("timezone")); } catch { return null; } };
  const known = (zone) => { try { new Intl.DateTimeFormat("en", { timeZone: zone }); return zone; } catch { return null; } };
  const zone = (known(chosen() || undefined) && chosen()) || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const short = (at) => new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeZoneName: "short" }).formatToParts(at).find((part) => part.type === "timeZoneName").value;
  const clock = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  // Windows mostly begin at whole minutes: seconds are shown where there are any.
  const local = (at) => `${clock.format(at).replace(/:00$/, "")} ${short(at)}`;

  const ago = (at) => {
    const seconds = Math.round((Date.now() - at) / 1000), size = Math.abs(seconds);
    const [width, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([width]) => size >= width) || [1, "s"];
    return seconds < 0 ? `in ${Math.floor(size / width)} ${unit}` : `${Math.floor(size / width)} ${unit} ago`;
  };

  const element = (date, time) => {
    const at = new Date(`${date}T${time}Z`), made = document.createElement("time");
    if (Number.isNaN(at.valueOf())) return `${date} ${time} UTC`; // somebody's words, such as 24:30
    made.dateTime = at.toISOString();
    made.title = `${date} ${time} UTC, ${ago(at)}`;
    made.textContent = local(at);
    return made;
  };

  const localize = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) if (walker.currentNode.data.includes(" UTC") && !walker.currentNode.parentElement.closest(LEFT_ALONE)) found.push(walker.currentNode);
    for (const node of found) {
      const parts = []; let end = 0;
      for (const match of node.data.matchAll(UTC_TEXT)) { parts.push(node.data.slice(end, match.index), element(match[1], match[2])); end = match.index + match[0].length; }
      if (parts.length) node.replaceWith(...parts, node.data.slice(end));
    }
  };

  // What clocks of the zone show as if it were UTC, and the instant at which they show it: across a change of the clock the nearest one.
  const shown = (at) => Date.parse(`${clock.format(at).replace(" ", "T")}Z`);
  const instant = (wanted) => { let at = wanted; for (let tries = 0; tries < 2; tries++) at += wanted - shown(at); return at; };
  const written = (ms) => new Date(ms).toISOString().slice(0, ms % 60000 ? 19 : 16);

  // A field for a time is sent as UTC, and shows the time of its reader; what nobody changes is sent as it came, for one time of the clock may be two instants.
  const translate = (field) => {
    const sent = document.createElement("input"), label = field.labels[0].firstChild, utc = Date.parse(`${field.value}Z`);
    Object.assign(sent, { type: "hidden", name: field.name, value: field.value });
    field.removeAttribute("name");
    field.autocomplete = "off";
    field.value = written(shown(utc));
    label.data = label.data.replace("UTC", short(utc));
    field.after(sent);
    const name = () => { field.title = `${sent.value.replace("T", " ")} UTC`; };
    field.addEventListener("input", () => { sent.value = field.value && written(instant(Date.parse(`${field.value}Z`))); name(); });
    name();
  };

  window.kafkaSla.times = { zone, local: (ms) => local(new Date(ms)), localize, written };
  localize(document.body);
  document.querySelectorAll("input[type=datetime-local]").forEach(translate);
})();
