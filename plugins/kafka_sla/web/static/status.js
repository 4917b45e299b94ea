// Consumer status over time: a strip per group and topic; each status has a letter and a pattern besides its colour.
"use strict";
window.kafkaSla = window.kafkaSla || {};
(() => {
  const ROW = 16;
  const { colour } = window.kafkaSla.shades;
  const FACES = { // face, mark
    OK: ["--good", ""], NOTFOUND: ["--hatch", "?"], WARNING: ["--pending", "W"], REWIND: ["--line-p50", "R"], STALLED: ["--bad", "="], STOPPED: ["--bad", "■"],
  };

  const box = (pen, status, x, y, width, height) => {
    const [face, mark] = FACES[status];
    pen.globalAlpha = status === "OK" ? 0.55 : 1;
    pen.fillStyle = colour(face); pen.fillRect(x, y, width, height);
    pen.globalAlpha = 1;
    if (!mark || width < 7) return;
    pen.fillStyle = colour("--card"); pen.font = "bold 10px system-ui, sans-serif"; pen.textAlign = "left"; pen.textBaseline = "middle";
    for (let at = x + 3; at + 7 < x + width; at += 40) pen.fillText(mark, at, y + height / 2);
  };

  // Neighbours of one status as one box.
  const runs = (statuses) => {
    const found = [];
    statuses.forEach((status, i) => {
      const last = found[found.length - 1];
      if (last && last.status === status) last.end = i + 1; else found.push({ status, start: i, end: i + 1 });
    });
    return found.filter((run) => run.status);
  };

  const canvas = (width, height) => {
    const made = document.createElement("canvas"), ratio = devicePixelRatio || 1;
    made.width = width * ratio; made.height = height * ratio;
    made.style.width = `${width}px`; made.style.height = `${height}px`;
    made.getContext("2d").scale(ratio, ratio);
    return made;
  };

  // Names without the group that all of them begin with: there is room for a dozen letters beside the charts.
  const apart = (names) => {
    const group = names.length ? names[0].slice(0, names[0].indexOf(" ") + 1) : "";
    return names.every((name) => name.startsWith(group)) ? names.map((name) => name.slice(group.length)) : names;
  };
  const short = (name) => name.length > 12 ? `${name.slice(0, 11)}…` : name;

  const draw = (host, data, left, width) => {
    const made = canvas(left + width, data.rows.length * ROW), pen = made.getContext("2d");
    const start = Date.parse(data.start), total = Date.parse(data.end) - start;
    const place = (i) => left + Math.max(0, Math.min(1, (data.at_ms[0] + i * data.step_ms - start) / total)) * width;
    const names = apart(data.rows.map((row) => row.name));
    data.rows.forEach((row, r) => {
      for (const run of runs(row.statuses)) box(pen, run.status, place(run.start), r * ROW, place(run.end) - place(run.start), ROW - 2);
      pen.fillStyle = colour("--soft"); pen.font = "11px system-ui, sans-serif"; pen.textAlign = "right"; pen.textBaseline = "middle";
      pen.fillText(short(names[r]), left - 6, r * ROW + ROW / 2 - 1, left - 10);
    });
    host.replaceChildren(made);
    return { at: (x, y) => [Math.floor(y / ROW), Math.floor((start + (x - left) / width * total - data.at_ms[0]) / data.step_ms)] };
  };

  // The statuses that occur, as they are drawn.
  const key = (data) => [...new Set(data.rows.flatMap((row) => row.statuses))].filter(Boolean).map((status) => {
    const one = document.createElement("span"), picture = canvas(22, 12);
    box(picture.getContext("2d"), status, 0, 0, 22, 12);
    picture.setAttribute("aria-hidden", "true");
    one.append(picture, status);
    return one;
  });

  window.kafkaSla.status = { draw, key };
})();
