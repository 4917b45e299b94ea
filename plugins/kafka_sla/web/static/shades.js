// What lies behind a curve: misses, excluded, unknown and never judged time, each with a pattern of its own.
"use strict";
window.kafkaSla = window.kafkaSla || {};
(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const PATTERNS = {
    bad: { face: "--miss", lines: [[0, 0, 0, 0]], text: "bad" },
    excluded: { stroke: "--hatch", lines: [[0, 8, 8, 0]], text: "excluded" },
    unknown: { stroke: "--cross", lines: [[0, 0, 8, 8], [0, 8, 8, 0]], text: "no data" },
    never: { stroke: "--hatch", dots: true, text: "not judged" },
  };

  const pattern = (context, kind) => {
    const { face, stroke, lines, dots } = PATTERNS[kind];
    if (face) return colour(face);
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.strokeStyle = pen.fillStyle = colour(stroke);
    pen.lineWidth = 1;
    for (const [x1, y1, x2, y2] of lines || []) { pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke(); }
    if (dots) pen.fillRect(3, 3, 1.5, 1.5);
    return context.createPattern(tile, "repeat");
  };

  // Which pattern a step gets: what most of it is. Time ahead of now is nothing.
  const kindOf = (data, i, now) => {
    if (data.at_ms[i] >= now) return null;
    const parts = { bad: data.bad[i], excluded: data.excluded[i], unknown: data.unknown[i], good: data.good[i] };
    if (parts.bad > 0) return "bad";
    const [name, share] = Object.entries(parts).sort((a, b) => b[1] - a[1])[0];
    return share === 0 ? "never" : name === "good" ? null : name;
  };

  const runs = (data) => {
    const found = [];
    const now = Date.now();
    data.at_ms.forEach((at, i) => {
      const kind = kindOf(data, i, now);
      const last = found[found.length - 1];
      if (last && last.kind === kind && last.end === at) last.end = at + data.step_ms;
      else found.push({ kind, start: at, end: at + data.step_ms });
    });
    return found.filter((run) => run.kind);
  };

  const draw = (plot, data) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    for (const run of runs(data)) {
      const x = plot.valToPos(run.start / 1000, "x", true);
      const width = Math.max(1.5, plot.valToPos(run.end / 1000, "x", true) - x);
      ctx.fillStyle = pattern(ctx, run.kind);
      ctx.fillRect(x, bbox.top, width, bbox.height);
    }
    for (const miss of data.misses.filter((miss) => !miss.exclusion)) { // a bar on top of the whole miss: it is one, whatever its single steps are
      const x = plot.valToPos(Date.parse(miss.start) / 1000, "x", true);
      const end = plot.valToPos((miss.end ? Date.parse(miss.end) : Date.now()) / 1000, "x", true);
      ctx.fillStyle = colour("--bad");
      ctx.fillRect(x, bbox.top, Math.max(2, end - x), 5 * devicePixelRatio);
    }
    ctx.restore();
  };

  // A small picture of a pattern for the key.
  const swatch = (kind) => {
    const canvas = document.createElement("canvas");
    canvas.width = 22; canvas.height = 12;
    const pen = canvas.getContext("2d");
    pen.fillStyle = pattern(pen, kind);
    pen.fillRect(0, 0, 22, 12);
    pen.strokeStyle = colour("--rule");
    pen.strokeRect(0.5, 0.5, 21, 11);
    return canvas;
  };

  window.kafkaSla.shades = { colour, draw, swatch, kinds: (data) => [...new Set(runs(data).map((run) => run.kind))], text: (kind) => PATTERNS[kind].text };
})();
