// The heat map: a row per partition, a column per step; the stronger the later, and a stroke through what was above the threshold.
"use strict";
window.kafkaSla = window.kafkaSla || {};
(() => {
  const ROW = 14, MOST = 420;
  const { colour } = window.kafkaSla.shades;

  const share = (worst, threshold) => worst <= threshold ? 0.55 * Math.sqrt(worst / threshold) : Math.min(1, 0.6 + 0.4 * Math.log10(worst / threshold) / 2);
  const mixed = (from, to, part) => from.map((value, i) => Math.round(value + (to[i] - value) * part));
  const rgb = (name) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.fillStyle = colour(name); pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };

  const draw = (host, data, left, width) => {
    const rows = data.partitions.length;
    const height = Math.max(3, Math.min(ROW, Math.floor(MOST / Math.max(1, rows))));
    const ratio = devicePixelRatio || 1;
    const canvas = document.createElement("canvas");
    canvas.width = (left + width) * ratio; canvas.height = Math.max(1, rows * height) * ratio;
    canvas.style.width = `${left + width}px`; canvas.style.height = `${rows * height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const cool = rgb("--faint"), warm = rgb("--link"), hot = rgb("--bad");
    const start = Date.parse(data.start), total = Date.parse(data.end) - start;
    data.worst_latency_ms.forEach((row, r) => row.forEach((worst, i) => {
      if (worst === null) return;
      const x = left + Math.max(0, (data.at_ms[i] - start) / total) * width;
      const end = left + Math.min(1, (data.at_ms[i] + data.step_ms - start) / total) * width;
      const part = share(worst, data.threshold_ms[i]);
      pen.fillStyle = `rgb(${(part < 0.6 ? mixed(cool, warm, part) : mixed(mixed(warm, hot, 0.75), hot, (part - 0.6) * 2.5)).join(",")})`;
      pen.fillRect(x, r * height, end - x + 0.3, height - 1);
      if (worst > data.threshold_ms[i] && height > 4) {
        pen.strokeStyle = colour("--card"); pen.lineWidth = 1.2;
        pen.beginPath(); pen.moveTo(x, (r + 1) * height - 1.5); pen.lineTo(end, r * height + 0.5); pen.stroke();
      }
    }));
    pen.fillStyle = colour("--soft"); pen.font = "11px system-ui, sans-serif"; pen.textAlign = "right"; pen.textBaseline = "middle";
    if (height > 9) data.partitions.forEach((name, r) => pen.fillText(short(name), left - 6, r * height + height / 2, left - 10));
    host.replaceChildren(canvas);
    return { height, at: (x, y) => [Math.floor(y / height), data.at_ms.findIndex((at) => at + data.step_ms > start + (x - left) / width * total)] };
  };

  // Topic and partition; the group is in the read-out.
  const short = (name) => { const place = name.slice(name.lastIndexOf(" ") + 1); return place.length > 12 ? `…${place.slice(-11)}` : place; };

  window.kafkaSla.heat = { draw };
})();
