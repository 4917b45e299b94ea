// The charts of one SLA: curves by uPlot, zoom by dragging or by keyboard, every figure also as a table. A zoom is a new address.
"use strict";
(() => {
  const { shades, heat, status: strip, times } = window.kafkaSla;
  const host = document.querySelector(".charts");
  const status = host.querySelector(".status"), readout = host.querySelector(".readout");
  const LEFT = 76;
  const CURVES = [ // label, column, colour, dash, width: distinguished by more than colour
    ["worst", "worst_latency_ms", "--line-max", [], 1.8], ["p99", "p99_ms", "--line-p99", [9, 3], 1.6],
    ["p95", "p95_ms", "--line-p95", [5, 4], 1.6], ["p50", "p50_ms", "--line-p50", [2, 3], 1.6],
  ];
  const RATES = [["consumed", "consumed_per_s", "--consumed", [], 1.7], ["produced", "produced_per_s", "--produced", [6, 4], 1.7]];

  const span = (ms) => {
    if (ms === null || ms === undefined) return "unknown";
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 60_000) return `${+(ms / 1000).toFixed(1)} s`;
    for (const [unit, width, small, part] of [["d", 864e5, "h", 36e5], ["h", 36e5, "min", 6e4], ["min", 6e4, "s", 1e3]])
      if (ms >= width) { const rest = Math.floor(ms % width / part); return `${Math.floor(ms / width)} ${unit}${rest ? ` ${rest} ${small}` : ""}`; }
  };
  const rate = (value) => value === null || value === undefined ? "unknown" : value >= 100 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
  const moment = (ms) => times.local(ms);
  const query = () => new URLSearchParams({ from: host.dataset.from, to: host.dataset.to });

  const visit = (from, to) => {
    const address = new URL(host.dataset.page, window.location.href);  // of a miss the page shows one time only
    address.searchParams.set("from", from); address.searchParams.set("to", to);
    window.location.assign(address);
  };
  // Whole minutes, unless a step begins or ends within one.
  const go = (data, from, to) => {
    const unit = data.step_ms % 60_000 ? 1000 : 60_000, [first, last] = [from, to].map((ms) => Math.round(ms / unit) * unit);
    if (first < last) visit(times.written(first), times.written(last));
  };

  const ask = async (what) => {
    const answer = await fetch(`${host.dataset.api}/${what}?${query()}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail || `The figures could not be read (${answer.status}).`);
    const damaged = answer.headers.get("Kafka-Sla-Damaged-Files");
    if (damaged && !document.querySelector(".damaged")) host.insertAdjacentHTML("beforebegin", `<p class="note damaged" role="alert">What ${Number(damaged)} damaged files held is missing here.</p>`);
    return answer.json();
  };

  const TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6];
  const CLOCK = [ // step in seconds, format, and what is added where a year, a day or a minute begins
    [31536e3, "{YYYY}", null, null, null, null, null, null, 1], [2419200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1], [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  ];
  const axes = (values, splits) => [
    { values: CLOCK, space: 70, stroke: shades.colour("--soft"), grid: { stroke: shades.colour("--grid"), width: 1 }, ticks: { stroke: shades.colour("--grid") } },
    { size: LEFT, filter: (plot, ticks) => ticks, stroke: shades.colour("--soft"), values, splits, grid: { stroke: shades.colour("--grid"), width: 1 }, ticks: { stroke: shades.colour("--grid") } },
  ];

  const latencySplits = (top, steep) => (plot, axis, low, high) => {
    if (!steep) { const step = TICKS.find((tick) => high / tick <= 6) || 2592e6; return Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step); }
    const above = TICKS.filter((tick) => tick > Math.max(...plot.thresholds) * 1.8 && tick <= high);
    const every = Math.max(1, Math.ceil(above.length / 5));
    return [0, ...plot.thresholds, ...above.filter((_, i) => i % every === every - 1 || every === 1)];
  };

  const common = (element, data, height, yAxis, series, hooks, scale) => ({
    width: element.clientWidth, height, ms: 1e-3, tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), times.zone),
    cursor: { sync: { key: "kafka-sla" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    legend: { show: false }, padding: [10, 8, 0, 0],
    scales: { x: { time: true, min: Date.parse(data.start) / 1000, max: Date.parse(data.end) / 1000, range: () => [Date.parse(data.start) / 1000, Date.parse(data.end) / 1000] }, y: scale },
    axes: yAxis, series: [{}, ...series],
    hooks: {
      drawClear: [(plot) => shades.draw(plot, data)],
      setSelect: [(plot) => { if (plot.select.width > 3) go(data, plot.posToVal(plot.select.left, "x") * 1000, plot.posToVal(plot.select.left + plot.select.width, "x") * 1000); }],
      setCursor: [(plot) => {
        const i = plot.cursor.idx;
        if (i === null || i === undefined) { tip.hidden = true; return; }
        describe(data, i);
        if (plot.over.matches(":hover") || plot.root.parentElement === document.activeElement) tooltip(plot, data, i);
      }],
      ...hooks,
    },
  });

  // Steps, not slopes: a value holds for its whole step.
  const stepped = uPlot.paths.stepped({ align: 1 });
  const line = ([label, , stroke, dash, width]) => ({ label, stroke: shades.colour(stroke), dash, width, paths: stepped, points: { show: false }, spanGaps: false });

  const latency = (data) => {
    const element = document.getElementById("latency");
    const thresholds = [...new Set(data.threshold_ms)].sort((a, b) => a - b);
    const top = Math.max(...thresholds, ...data.worst_latency_ms.filter((v) => v !== null), ...data.worst_latency_high_ms.filter((v) => v !== null));
    const steep = top > 8 * thresholds[0];
    const high = steep ? top * 1.4 : top * 1.12;
    const bound = { stroke: "transparent", paths: stepped, points: { show: false } };
    const unbounded = data.worst_latency_ms.map((worst, i) => worst !== null && data.worst_latency_high_ms[i] === null ? high : data.worst_latency_high_ms[i]);
    const options = common(element, data, 320, axes((plot, ticks) => ticks.map((v) => v ? span(v) : "0"), latencySplits(top, steep)),
      [...CURVES.map(line), { ...bound, label: "high" }, { ...bound, label: "low" }],
      { draw: [(plot) => threshold(plot, data)] },
      steep ? { distr: 4, asinh: thresholds[0] / 2, range: () => [0, high] } : { range: () => [0, high] });
    options.bands = [{ series: [5, 6], fill: shades.colour("--band") }];
    element.replaceChildren();
    const plot = new uPlot(options, [data.at_ms.map((at) => at / 1000), ...CURVES.map(([, column]) => data[column]), unbounded, data.worst_latency_low_ms], null);
    plot.thresholds = thresholds;
    element.append(plot.root);
    plot.redraw();
    return plot;
  };

  // As it was at the time: a step where the configuration was edited, each level with its own words.
  const threshold = (plot, data) => {
    const { ctx, bbox } = plot, ratio = devicePixelRatio;
    const x = (i) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos((data.at_ms[0] + i * data.step_ms) / 1000, "x", true)));
    const levels = data.threshold_ms.flatMap((ms, i) => ms === data.threshold_ms[i - 1] ? [] : [[i, ms]]);
    ctx.save();
    ctx.strokeStyle = shades.colour("--threshold"); ctx.lineWidth = 1.6 * ratio; ctx.setLineDash([10 * ratio, 5 * ratio]);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`; ctx.textAlign = "right"; ctx.textBaseline = "bottom";
    ctx.beginPath();
    levels.forEach(([i, ms], n) => {
      const y = plot.valToPos(ms, "y", true), end = x(levels[n + 1]?.[0] ?? data.threshold_ms.length);
      ctx.lineTo(x(i), y); ctx.lineTo(end, y);
    });
    ctx.stroke();
    levels.forEach(([, ms], n) => {
      const words = `threshold ${span(ms)}`, width = ctx.measureText(words).width, right = x(levels[n + 1]?.[0] ?? data.threshold_ms.length) - 4, y = plot.valToPos(ms, "y", true);
      ctx.fillStyle = shades.colour("--card"); ctx.globalAlpha = 0.85; ctx.fillRect(right - width - 4, y - 17 * ratio, width + 8, 15 * ratio);
      ctx.globalAlpha = 1; ctx.fillStyle = shades.colour("--threshold"); ctx.fillText(words, right, y - 3 * ratio);
    });
    ctx.restore();
  };

  const rates = (data) => {
    const element = document.getElementById("rates");
    const options = common(element, data, 170, axes((plot, ticks) => ticks.map(rate)), RATES.map(line), {}, { range: (plot, low, high) => [0, (high || 1) * 1.1] });
    element.replaceChildren();
    return new uPlot(options, [data.at_ms.map((at) => at / 1000), ...RATES.map(([, column]) => data[column])], element);
  };

  const key = (id, curves, kinds) => {
    const list = document.getElementById(id);
    list.replaceChildren();
    const add = (picture, words) => { const one = document.createElement("span"); one.append(picture, words); list.append(one); };
    for (const [label, , stroke, dash, width] of curves) {
      const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      picture.setAttribute("width", 30); picture.setAttribute("height", 10); picture.setAttribute("aria-hidden", "true");
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [name, value] of Object.entries({ x1: 0, x2: 30, y1: 5, y2: 5, stroke: shades.colour(stroke), "stroke-width": width + 0.4, "stroke-dasharray": dash.join(" ") })) mark.setAttribute(name, value);
      picture.append(mark); add(picture, label);
    }
    for (const kind of kinds) { const picture = shades.swatch(kind); picture.setAttribute("aria-hidden", "true"); add(picture, shades.text(kind)); }
  };

  const verdict = (data, i) => {
    const parts = ["good", "bad", "excluded", "unknown"].filter((name) => data[name][i] > 0);
    return parts.length ? parts.map((name) => data[name][i] >= 0.999 ? name : `${name} ${Math.round(data[name][i] * 100)} %`).join(", ") : "not judged";
  };
  const bounds = (data, i) => data.worst_latency_ms[i] === null ? "" : ` (${span(data.worst_latency_low_ms[i])} to ${data.worst_latency_high_ms[i] === null ? "unbounded" : span(data.worst_latency_high_ms[i])})`;
  const describe = (data, i) => {
    readout.textContent = `${moment(data.at_ms[i])}: ${verdict(data, i)}; worst ${span(data.worst_latency_ms[i])}${bounds(data, i)}, threshold ${span(data.threshold_ms[i])}, p99 ${span(data.p99_ms[i])}, p95 ${span(data.p95_ms[i])}, p50 ${span(data.p50_ms[i])}; consumed ${rate(data.consumed_per_s[i])}/s, produced ${rate(data.produced_per_s[i])}/s`;
  };

  // The values beside the cursor, on the side where there is room.
  const tip = document.createElement("div");
  tip.className = "tip"; tip.hidden = true; tip.setAttribute("aria-hidden", "true");
  const tooltip = (plot, data, i) => {
    const lines = [[moment(data.at_ms[i]), verdict(data, i)], ["threshold", span(data.threshold_ms[i])], ["worst", span(data.worst_latency_ms[i]) + bounds(data, i)],
      ["p99", span(data.p99_ms[i])], ["p95", span(data.p95_ms[i])], ["p50", span(data.p50_ms[i])], ["consumed", `${rate(data.consumed_per_s[i])}/s`], ["produced", `${rate(data.produced_per_s[i])}/s`]];
    tip.replaceChildren(...lines.map(([name, value]) => { const line = document.createElement("span"), figure = document.createElement("b"); figure.textContent = value; line.append(`${name} `, figure); return line; }));
    plot.over.append(tip);
    tip.hidden = false;
    const { left, top } = plot.cursor, right = left > plot.over.clientWidth / 2;
    tip.style.left = right ? "" : `${left + 14}px`; tip.style.right = right ? `${plot.over.clientWidth - left + 14}px` : "";
    tip.style.top = `${Math.max(0, Math.min(top, plot.over.clientHeight - tip.offsetHeight))}px`;
  };

  const keyboard = (element, data, current) => {
    let at = null, from = null;
    const put = () => { const plot = current(); plot.setCursor({ left: plot.valToPos(data.at_ms[at] / 1000 + data.step_ms / 2000, "x"), top: 20 }); };
    const select = () => {
      const plot = current();
      const [first, last] = [Math.min(from, at), Math.max(from, at)];
      const left = plot.valToPos(data.at_ms[first] / 1000, "x"), right = plot.valToPos((data.at_ms[last] + data.step_ms) / 1000, "x");
      plot.setSelect({ left, width: right - left, top: 0, height: plot.over.clientHeight }, false);
    };
    element.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
      if (move) {
        if (event.shiftKey && from === null) from = at ?? 0;
        if (!event.shiftKey) { from = null; current().setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); }
        at = Math.max(0, Math.min(data.at_ms.length - 1, (at ?? -1) + move));
        put(); describe(data, at); tooltip(current(), data, at);
        if (from !== null) select();
      } else if (event.key === "Enter" && from !== null) go(data, data.at_ms[Math.min(from, at)], data.at_ms[Math.max(from, at)] + data.step_ms);
      else if (event.key === "-") { const { widerFrom, widerTo } = host.dataset; if (widerFrom) visit(widerFrom, widerTo); }
      else return;
      event.preventDefault();
    });
  };

  const table = (data) => {
    const details = document.getElementById("figures");
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const rows = data.at_ms.map((at, i) => [moment(at), verdict(data, i), span(data.threshold_ms[i]), span(data.p50_ms[i]), span(data.p95_ms[i]), span(data.p99_ms[i]), span(data.worst_latency_ms[i]) + bounds(data, i), rate(data.consumed_per_s[i]), rate(data.produced_per_s[i])]);
      const made = document.createElement("table");
      const head = made.createTHead().insertRow();
      for (const name of ["From", "Verdict", "Threshold", "p50", "p95", "p99", "Worst (bounds)", "Consumed/s", "Produced/s"]) { const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = name; head.append(cell); }
      const body = made.createTBody();
      for (const row of rows) { const line = body.insertRow(); for (const text of row) line.insertCell().textContent = text; }
      details.querySelector(".scroll").append(made);
    });
  };

  const heatMap = (data) => {
    const element = document.getElementById("heat");
    if (!data.partitions.length) { element.textContent = "No partition was measured in this time."; return; }
    const drawn = heat.draw(element, data, LEFT, element.clientWidth - LEFT - 8);
    const say = (r, i) => { if (data.partitions[r] && i >= 0) readout.textContent = `${data.partitions[r]} at ${moment(data.at_ms[i])}: worst ${span(data.worst_latency_ms[r][i])}`; };
    let row = 0, column = data.at_ms.length - 1;
    element.onmousemove = (event) => { const box = element.getBoundingClientRect(); say(...drawn.at(event.clientX - box.left, event.clientY - box.top)); };
    element.onkeydown = (event) => {
      const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [0, 0];
      if (!down && !right) return;
      row = Math.max(0, Math.min(data.partitions.length - 1, row + down)); column = Math.max(0, Math.min(data.at_ms.length - 1, column + right));
      say(row, column); event.preventDefault();
    };
    document.getElementById("heat-key").textContent = `The worst partitions are on top${data.omitted ? `, ${data.omitted} better ones are left out` : ""}; stronger is later, red with a stroke is above the threshold of its time, empty is unknown.`;
  };

  const statusStrip = (lines) => {
    const element = document.getElementById("consumer-status");
    if (!lines.rows.length) { element.textContent = "No consumer status was published for this time."; return; }
    const drawn = strip.draw(element, lines, LEFT, element.clientWidth - LEFT - 8);
    const say = (r, i) => { if (lines.rows[r] && i >= 0) readout.textContent = `${lines.rows[r].name} at ${moment(lines.at_ms[i])}: ${lines.rows[r].statuses[i] || "no status"}`; };
    let row = 0, column = lines.at_ms.length - 1;
    element.onmousemove = (event) => { const box = element.getBoundingClientRect(); say(...drawn.at(event.clientX - box.left, event.clientY - box.top)); };
    element.onkeydown = (event) => {
      const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [0, 0];
      if (!down && !right) return;
      row = Math.max(0, Math.min(lines.rows.length - 1, row + down)); column = Math.max(0, Math.min(lines.at_ms.length - 1, column + right));
      say(row, column); event.preventDefault();
    };
    document.getElementById("consumer-status-key").replaceChildren(...strip.key(lines));
    if (Date.parse(lines.covered_from) > Date.parse(lines.start)) document.getElementById("consumer-status-key").append(`known here from ${moment(Date.parse(lines.covered_from))} on; zoom in to see what is older`);
  };

  const show = (data, cells, lines) => {
    const plots = [[latency(data), "latency"], [rates(data), "rates"]];
    key("latency-key", [...CURVES], shades.kinds(data));
    key("rates-key", RATES, []);
    if (cells) heatMap(cells);
    if (lines) statusStrip(lines);
    return plots;
  };

  const start = async () => {
    const whole = document.getElementById("heat") !== null, later = whole ? ask("status") : null;
    const [data, cells] = await Promise.all([ask("timeline"), whole ? ask("partitions") : null]);
    let lines = null, plots = show(data, cells, lines);
    // Read from published rows, not from sums: over a long time it takes longer than the rest.
    if (later) {
      const element = document.getElementById("consumer-status");
      element.textContent = "Loading …";
      later.then((found) => { lines = found; statusStrip(found); }, (error) => { element.textContent = error.message; }).then(() => { host.dataset.ready = "yes"; });
    }
    status.textContent = data.worst_latency_ms.some((v) => v !== null) || data.p50_ms.some((v) => v !== null) ? "" : "Nothing was measured in this time.";
    plots.forEach(([, id], i) => keyboard(document.getElementById(id), data, () => plots[i][0]));
    table(data);
    const again = () => { for (const [plot] of plots) plot.destroy(); plots = show(data, cells, lines); };
    document.addEventListener("themechange", again);
    let width = host.clientWidth;
    new ResizeObserver(() => { if (host.clientWidth !== width) { width = host.clientWidth; again(); } }).observe(host);
    if (!later) host.dataset.ready = "yes";
  };

  start().catch((error) => { status.textContent = error.message; status.classList.add("error"); host.dataset.ready = "failed"; });
})();
