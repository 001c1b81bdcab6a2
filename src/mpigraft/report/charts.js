// Makes the report's charts with Observable Plot from the figures in #curves: axes, bands, curves,
// marks and names are Plot's; what is beside what, and where names go, is decided here. Colours are
// the page's own classes, so light, dark and print agree without drawing again. `page.js` says when
// to draw.
"use strict";
const Charts = (() => {
  const data = JSON.parse(document.getElementById("curves").textContent);
  // Signs, words, shape and colour of a verdict. `n`: against another baseline than the campaign's.
  const VERDICT = {
    f: ["▲", "faster", "up", "faster"],
    s: ["▼", "slower", "down", "slower"],
    e: ["=", "equivalent", "square", "equal"],
    i: ["·", "inconclusive", "ring", "open"],
    n: ["", "no verdict", "ring", "open"],
  };
  const [VALUE, RATIO, LOW, HIGH, CALL, ROUNDS, NEEDED] = [0, 1, 2, 3, 4, 5, 6];
  const state = { baseline: data.baseline, hidden: new Set(), isolated: null };
  const names = data.order;

  // ---- texts

  const esc = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const times = (v) => (v === null ? "-" : v < 0.1 && v >= 0.00995 ? v.toFixed(3) : v >= 99.95 ? v.toFixed(0) : v.toPrecision(v < 0.00995 ? 2 : 3));
  const figure = (v) => (v === null ? "-" : v >= 1000 ? String(Math.round(v)) : String(+v.toPrecision(3)));
  const short = (v) => (v >= 1e6 ? `${v / 1e6}M` : v >= 1e4 ? `${v / 1e3}k` : String(v));
  const bytes = (size) => {
    if (size <= 0) return "";
    for (const [unit, name] of [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]]) {
      if (size >= unit && size % unit === 0) return `${size / unit} ${name}`;
    }
    return `${size} B`;
  };
  // 0.079 of a bandwidth and 12.7 of a latency both read `12.7x slower`; an overlap is no speed.
  const factor = (ratio, lower, unit) => {
    const by = Math.max(ratio, 1 / ratio);
    if (by < 1.005) return "equal";
    const [more, less] = unit === "%" ? ["higher", "lower"] : lower ? ["slower", "faster"] : ["faster", "slower"];
    return `${times(by)}x ${ratio > 1 ? more : less}`;
  };
  const label = (name) => data.names[name].label + (name === state.baseline ? ", baseline" : "");

  function describe(section, name, size, cell) {
    const lines = [name + (size > 0 ? `, ${bytes(size)}` : ""), `${figure(cell[VALUE])} ${section.unit}`];
    if (section.peak) lines.push(`${figure((100 * cell[VALUE]) / section.peak[0])} % of ${section.peak[1]}`);
    if (name === state.baseline) return lines;
    const [mark, verdict] = VERDICT[cell[CALL]];
    const interval = cell[LOW] === null ? (cell[ROUNDS] > 1 ? ", interval unknown" : ", no interval") : ` [${times(cell[LOW])}, ${times(cell[HIGH])}]`;
    lines.push(`ratio ${times(cell[RATIO])}${cell[CALL] === "n" ? "" : interval}, ${factor(cell[RATIO], section.lower, section.unit)}`);
    lines.push(`${mark} ${verdict}, ${cell[ROUNDS]} round${cell[ROUNDS] === 1 ? "" : "s"}`.trim());
    if (cell[NEEDED]) lines.push(`about ${cell[NEEDED]} rounds would decide`);
    return lines;
  }

  // ---- figures, against the baseline that was chosen

  const known = (values) => values.filter((v) => v !== null && v !== undefined && v > 0);
  const geometric = (values) => (values.length ? Math.exp(values.reduce((a, v) => a + Math.log(v), 0) / values.length) : null);

  // `base` has a value for each size; `groups` have a cell for each size, or null.
  function compared(section) {
    if (state.baseline === data.baseline) return { base: section.base, band: section.baseBand, groups: section.groups };
    const every = [{ name: data.baseline, band: section.baseBand, cells: section.base.map((v) => (v === null ? null : [v, 1, null, null, "n", 1, null])) }, ...section.groups];
    const own = every.find((g) => g.name === state.baseline);
    const base = section.sizes.map((_, i) => (own && own.cells[i] ? own.cells[i][VALUE] : null));
    const groups = every.filter((g) => g !== own).map((g) => {
      const cells = g.cells.map((c, i) => (c && base[i] ? [c[VALUE], c[VALUE] / base[i], null, null, "n", c[ROUNDS], null] : null));
      const ratios = cells.filter(Boolean).map((c) => c[RATIO]);
      return { name: g.name, band: g.band, cells, curve: "n", pooled: geometric(ratios), over: ratios.length };
    });
    return { base, band: own ? own.band : null, groups: groups.filter((g) => g.cells.some(Boolean)) };
  }

  // ---- axes: logarithmic, with the ends and marks of what is on them

  const log = Math.log10;
  const DECADES = [-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

  function axis(values, choose, pad) {
    const [low, high] = values.length ? [log(Math.min(...values)), log(Math.max(...values))] : [0, 1];
    const more = Math.max((high - low) * pad, 0.02);
    const range = [low - more, high + more];
    return { range, marks: choose(high - low, range.map((v) => 10 ** v)).filter((v) => log(v) >= range[0] && log(v) <= range[1]) };
  }

  // Round values at equal steps: over a narrow range decades have one mark, or none.
  function fine([low, high]) {
    const rough = (high - low) / 4;
    const decade = 10 ** Math.floor(log(rough));
    const step = [1, 2, 5, 10].map((s) => s * decade).find((s) => s >= rough);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => +((first + i) * step).toPrecision(12));
  }

  const valueAxis = (values) => axis(known(values), (span, ends) => {
    if (span < 0.5) return fine(ends);
    const steps = span > 2.2 ? [1] : span > 1.2 ? [1, 3] : [1, 2, 5];
    const every = DECADES.flatMap((d) => steps.map((s) => +(s * 10 ** d).toPrecision(3)));
    return span > 5 ? every.filter((v) => Math.round(log(v)) % 2 === 0) : every;
  }, 0.06);

  const ratioAxis = (values, least = 1.25) => axis(known(values).concat([1 / least, least]), (span) => {
    if (span > 2.2) return [1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1e3, 1e4];
    if (span > 1.1) return [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];
    if (span > 0.5) return [0.1, 0.2, 0.5, 1, 2, 5, 10];
    return span > 0.28 ? [0.5, 0.7, 1, 1.4, 2] : [0.8, 0.9, 1, 1.1, 1.2];
  }, 0.06);

  function sizeAxis(sizes, step) {
    const positive = sizes.filter((s) => s > 0);
    const marks = [];
    for (let power = 0; 2 ** power <= Math.max(...positive); power += step) {
      if (2 ** power >= Math.min(...positive)) marks.push(2 ** power);
    }
    return { ...axis(positive, () => marks, 0.025), text: bytes };
  }

  const countAxis = (counts) => ({ ...axis(counts, () => counts, 0.06), text: String });

  const linearAxis = (range, marks, words) => ({ linear: true, range, marks: marks || fine(range), text: words || short });

  // A few wild intervals must not flatten all curves: the widest tenth may leave the panel.
  function common(pairs) {
    const width = (p) => (p[0] > 0 ? p[1] / p[0] : Infinity);
    return [...pairs].sort((a, b) => width(a) - width(b)).slice(0, Math.ceil(pairs.length * 0.9)).flat();
  }

  // ---- one panel: axes, bands, curves with marks, and names at their ends

  const tag = (name, attributes, inner = "") => `<${name}${Object.entries(attributes).map(([k, v]) => (v === null || v === undefined ? "" : ` ${k}="${esc(typeof v === "number" ? +v.toFixed(1) : v)}"`)).join("")}>${inner}</${name}>`;
  const text = (x, y, words, attributes = {}) => tag("text", { x, y, ...attributes }, esc(words));

  function spread(wanted, gap, height) {
    const order = wanted.map((y, i) => [y, i]).sort((a, b) => a[0] - b[0]);
    const placed = [];
    order.forEach(([y], i) => { placed[i] = Math.max(y, i ? placed[i - 1] + gap : gap / 2); });
    let limit = height - gap / 2;
    for (let i = placed.length - 1; i >= 0; i -= 1) {
      placed[i] = Math.min(placed[i], limit);
      limit = placed[i] - gap;
    }
    const result = [];
    order.forEach(([, index], i) => { result[index] = placed[i]; });
    return result;
  }

  const ink = (name) => (name === state.baseline ? "base" : `hue${data.names[name].hue}`);
  const faded = (name) => (state.isolated !== null && state.isolated !== name ? " dim" : "");
  const curve = (name, inner) => tag("g", { class: `curve ${ink(name)}${faded(name)}`, "data-name": names.indexOf(name) }, inner);

  const dashes = (name) => data.names[name].dash || null;

  // A mark of Plot with a class of ours; one of a configuration is faded and clicked with its others.
  const styled = (klass, options, name) => ({ ...options, render: (index, scales, values, size, context, next) => {
    const node = next(index, scales, values, size, context);
    node.setAttribute("class", klass);
    if (name === undefined) return node;
    const own = document.createElementNS("http://www.w3.org/2000/svg", "g");
    own.setAttribute("class", `curve ${ink(name)}${faded(name)}`);
    own.dataset.name = names.indexOf(name);
    own.append(node);
    return own;
  } });

  const scalesOf = (box, xaxis, yaxis) => {
    const scale = (axis) => (axis.linear ? { domain: axis.range } : { type: "log", domain: axis.range.map((v) => 10 ** v) });
    return {
      x: Plot.scale({ x: { ...scale(xaxis), range: [0, box.w] } }),
      y: Plot.scale({ y: yaxis ? { ...scale(yaxis), range: [box.h, 0], clamp: true } : { domain: [0, box.h], range: [0, box.h] } }),
    };
  };

  // One plot as a part of a figure; what is drawn beside its frame stays visible.
  function part(box, scales, marks) {
    const svg = Plot.plot({ width: box.w, height: box.h, margin: 0, x: { ...scales.x, axis: null }, y: { ...scales.y, axis: null }, marks });
    svg.querySelector("style").remove(); // the page has its own
    svg.removeAttribute("class");
    for (const [name, value] of [["x", box.x], ["y", box.y], ["overflow", "visible"]]) svg.setAttribute(name, value);
    return svg.outerHTML;
  }

  // The mark of each verdict; what has none is a dot.
  const SYMBOL = { up: "triangle", down: "triangle", square: "square", ring: "circle" };
  const marksOf = (name, points, y = "y") => [...new Set(points.map((p) => p.call))].map((call) => {
    const [kind, klass] = call ? VERDICT[call].slice(2) : [];
    const look = call ? `v-${klass}${kind === "ring" ? " ring" : ""}` : "dot";
    return Plot.dot(points.filter((p) => p.call === call), styled(look, { x: "x", y, symbol: SYMBOL[kind], rotate: kind === "down" ? 180 : 0, r: call ? 3 : 2.2 }, name));
  });

  // A configuration's band, line and marks.
  function curveMarks(one) {
    const points = one.points.map((p) => p || { x: NaN, y: NaN });
    const shown = one.points.filter(Boolean);
    const edge = (side) => (p) => (p.low > 0 ? p[side] : NaN);
    const band = () => Plot.areaY(points, styled("band", { x: "x", y1: edge("low"), y2: edge("high") }, one.name));
    const line = Plot.line(points, styled("line", { x: "x", y: "y", strokeDasharray: dashes(one.name) }, one.name));
    return [...(shown.filter((p) => p.low > 0).length > 1 ? [band()] : []), line, ...marksOf(one.name, shown)];
  }

  // box: x, y, w, h of the plot; hits collects [x, y, name, words] for the pointer
  function panel(box, spec, hits) {
    const scales = scalesOf(box, spec.xaxis, spec.yaxis);
    const [X, Y] = [(v) => scales.x.apply(v), (v) => scales.y.apply(v)];
    const [left, right] = scales.x.domain;
    const marks = [];
    if (spec.margin) marks.push(Plot.rect([0], styled("margin", { x1: left, x2: right, y1: 1 / (1 + spec.margin), y2: 1 + spec.margin })));
    marks.push(Plot.ruleY([...spec.yaxis.marks.filter((v) => v !== 1 || !spec.ratio), scales.y.domain[0]], styled("grid", {})));
    if (spec.ratio) marks.push(Plot.ruleY([1], styled("one", {})));
    marks.push(Plot.axisY(spec.yaxis.marks, { anchor: "left", tickSize: 0, tickPadding: 5, text: spec.yaxis.text || short, label: null }));
    // Of names that would touch each other the later goes; the last one, how far it goes, stays.
    let last = null;
    const apart = (a, b) => X(b) - X(a) >= 3.2 * (spec.xaxis.text(a).length + spec.xaxis.text(b).length) + 3;
    const end = spec.xaxis.marks.at(-1);
    const named = spec.bare ? [] : spec.xaxis.marks.filter((mark) => {
      const fits = mark === end || ((last === null || apart(last, mark)) && apart(mark, end));
      if (fits) last = mark;
      return fits;
    });
    marks.push(Plot.axisX(spec.xaxis.marks, { anchor: "bottom", tickSize: 4, tickPadding: 4, text: (v) => (named.includes(v) ? spec.xaxis.text(v) : ""), label: null, stroke: "var(--grid)", fill: "currentColor" }));
    if (spec.peak && log(spec.peak[0]) <= spec.yaxis.range[1]) {
      marks.push(Plot.ruleY([spec.peak[0]], styled("peak", {})));
      marks.push(Plot.text([`100 % of ${spec.peak[1]}`], styled("note", { text: (d) => d, y: spec.peak[0], frameAnchor: "left", textAnchor: "start", dx: 4, dy: -7 })));
    }
    marks.push(...(spec.marks || []));
    for (const p of spec.points || []) hits.push([box.x + X(p.x), box.y + Y(p.y), null, p.words]);
    for (const one of spec.curves || []) {
      marks.push(...curveMarks(one));
      for (const p of one.points.filter(Boolean)) hits.push([box.x + X(p.x), box.y + Y(p.y), one.name, p.words]);
    }
    if (spec.labels) marks.push(...ends(box, spec, scales));
    const title = spec.title ? tag("text", { x: box.x, y: box.y - 6, class: "title" }, spec.title) : "";
    return part(box, scales, marks) + title;
  }

  function ends(box, spec, scales) {
    const drawn = spec.curves.map((c) => [c, c.points.filter(Boolean).at(-1)]).filter(([, end]) => end);
    const placed = spread(drawn.map(([, end]) => scales.y.apply(end.y)), Math.min(14.5, box.h / Math.max(drawn.length, 1)), box.h);
    return drawn.flatMap(([one, end], i) => {
      const y = scales.y.invert(placed[i]);
      const name = spec.brief ? data.names[one.name].label : label(one.name);
      return [
        Plot.link([0], styled("lead", { x1: end.x, y1: end.y, x2: scales.x.invert(box.w + 6), y2: y }, one.name)),
        Plot.text([name], styled("name at-end", { text: (d) => d, y, frameAnchor: "right", textAnchor: "start", dx: 8 }, one.name)),
      ];
    });
  }

  const picture = (width, height, inner, hits) => [tag("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, inner), hits];
  // Widths of texts as the page shows them, in px.
  const ruler = document.createElement("canvas").getContext("2d");
  const textWidth = (words) => {
    ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return ruler.measureText(words).width;
  };
  const room = (shown) => 26 + Math.max(0, ...shown.map((n) => textWidth(label(n))));
  // A name that is too long for its place loses its middle: both ends tell names apart.
  const fitted = (name, most) => {
    let kept = name.length;
    const cut = () => (kept < name.length ? `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(name.length - Math.floor(kept / 2))}` : name);
    while (kept > 6 && textWidth(cut()) > most) kept -= 1;
    return cut();
  };

  // The names below a figure that is too narrow to have them at the ends of its curves.
  function legend(shown, top, width) {
    const wide = Math.min(width, 12 + Math.max(0, ...shown.map((n) => 36 + textWidth(label(n)))));
    const columns = Math.max(1, Math.floor(width / wide));
    const parts = shown.map((name, i) => {
      const [x, y] = [(i % columns) * wide + 4, top + 18 * Math.floor(i / columns)];
      return curve(name, tag("path", { d: `M${x} ${y}h22`, class: "line", "stroke-dasharray": dashes(name) }) + text(x + 27, y + 4, label(name), { class: "name" }));
    });
    return [parts.join(""), 18 * Math.ceil(shown.length / columns) + 8];
  }

  // One panel over the whole width. Names are at the ends of the curves, or below them where they
  // would leave no room to these; `xaxis` is a function of whether they would.
  function single(width, compact, spec) {
    const shown = (spec.curves || []).map((c) => c.name);
    const narrow = width < 520 || room(shown) > 0.34 * width;
    const height = spec.height || Math.max(compact ? 220 : narrow ? 280 : 340, 60 + 15 * (narrow ? 0 : shown.length));
    const [key, below] = narrow && shown.length ? legend(shown, height + 10, width) : ["", 0];
    const hits = [];
    const box = { x: 46, y: 14, w: width - 46 - (narrow || !shown.length ? 12 : room(shown)), h: height - 14 - 34 };
    return picture(width, height + below, panel(box, { ...spec, xaxis: spec.xaxis(narrow), labels: !narrow && shown.length }, hits) + key, hits);
  }

  // A point for each size, and none where a size that others have is missing.
  const sized = (section, point) => section.sizes.flatMap((size, i) => (section.breaks.includes(i) ? [point(size, i), null] : [point(size, i)]));

  // ---- absolute values over message size

  function absolute(section, width, compact) {
    const { base, band, groups } = compared(section);
    const every = [...groups, { name: state.baseline, band, cells: base.map((v) => (v === null ? null : [v, 1, null, null, "n", 1, null])) }];
    const curves = every.filter((g) => !state.hidden.has(g.name) && g.cells.some(Boolean)).map((g) => ({
      name: g.name,
      points: sized(section, (size, i) => {
        const cell = g.cells[i];
        if (!cell || cell[VALUE] === null || size <= 0) return null;
        const pair = g.band ? g.band[i] : null;
        return { x: size, y: cell[VALUE], low: pair ? pair[0] : null, high: pair ? pair[1] : null, words: describe(section, g.name, size, cell) };
      }),
    }));
    if (!curves.length) return picture(width, 40, text(4, 20, "No configuration is shown."), []);
    const points = curves.flatMap((c) => c.points.filter(Boolean));
    const values = [...points.map((p) => p.y), ...common(points.filter((p) => p.low).map((p) => [p.low, p.high]))];
    if (section.peak && Math.max(...values) > section.peak[0] / 5) values.push(section.peak[0]);
    const xaxis = (narrow) => sizeAxis(section.sizes, narrow ? 5 : width < 760 ? 4 : 2);
    return single(width, compact, { xaxis, yaxis: valueAxis(values), curves, peak: section.peak });
  }

  // ---- ratios: a small panel for each configuration

  const pointsOf = (section, group) => sized(section, (size, i) => {
    const cell = group.cells[i];
    if (!cell || cell[RATIO] === null || size <= 0) return null;
    return { x: size, y: cell[RATIO], low: cell[LOW], high: cell[HIGH], call: cell[CALL], words: describe(section, group.name, size, cell) };
  });
  const reach = (points) => known([...points.map((p) => p.y), ...common(points.filter((p) => p.low > 0).map((p) => [p.low, p.high]))]);

  function ratio(section, width, compact) {
    if (!section.curve) return forest(section, width);
    const groups = compared(section).groups.filter((g) => !state.hidden.has(g.name));
    if (!groups.length) return picture(width, 40, text(4, 20, "No configuration is shown."), []);
    const most = Math.max(1, Math.min(4, Math.floor(width / 215)));
    const rows = Math.ceil(groups.length / most);
    const columns = Math.ceil(groups.length / rows); // even rows: no panel is alone
    const [tall, gapX, gapY, left] = [compact ? 68 : rows === 1 ? 150 : 112, 42, compact ? 36 : 46, 38];
    const wide = (width - left - 8 - (columns - 1) * gapX) / columns;
    const points = groups.map((g) => pointsOf(section, g));
    const near = points.filter((ps) => reach(ps.filter(Boolean)).every((v) => v >= 0.5 && v <= 2));
    const [axisNear, axisFar] = [near, points].map((which) => ratioAxis(which.flatMap((ps) => reach(ps.filter(Boolean)))));
    const hits = [];
    const panels = groups.map((group, i) => {
      const box = { x: left + (i % columns) * (wide + gapX), y: 24 + Math.floor(i / columns) * (tall + gapY), w: wide, h: tall };
      const [mark, , , klass] = VERDICT[group.curve[0]];
      const few = group.over < section.sizes.length ? `, ${group.over} of ${section.sizes.length} sizes` : "";
      const verdict = `${mark} ${factor(group.pooled, section.lower, section.unit)}${few}`;
      const name = fitted(data.names[group.name].label, wide - 4 - textWidth(verdict));
      return panel(box, {
        xaxis: sizeAxis(section.sizes, 10), yaxis: near.includes(points[i]) ? axisNear : axisFar, ratio: true, margin: section.margin || data.margin,
        bare: i + columns < groups.length, curves: [{ name: group.name, points: points[i] }],
        title: `${esc(name)} <tspan class="t-${klass}">${verdict}</tspan>`,
      }, hits);
    });
    return picture(width, 24 + rows * tall + (rows - 1) * gapY + 30, panels.join(""), hits);
  }

  // ---- benchmarks without sizes: one row for each configuration

  function forest(section, width) {
    const groups = compared(section).groups.filter((g) => g.cells[0] && g.cells[0][RATIO] !== null && !state.hidden.has(g.name));
    if (!groups.length) return picture(width, 40, text(4, 20, "No configuration is shown."), []);
    const left = Math.min(width * 0.45, 26 + Math.max(...groups.map((g) => textWidth(data.names[g.name].label))));
    const values = groups.flatMap((g) => [g.cells[0][RATIO], ...(g.cells[0][LOW] === null ? [] : [g.cells[0][LOW], g.cells[0][HIGH]])]);
    const axis = ratioAxis(values);
    const height = 42 + 30 * groups.length;
    const box = { x: left, y: 8, w: width - left - 16, h: height - 42 };
    const scales = scalesOf(box, axis, null);
    const margin = section.margin || data.margin;
    const marks = [
      Plot.rect([0], styled("margin", { x1: 1 / (1 + margin), x2: 1 + margin, y1: 0, y2: box.h })),
      Plot.ruleX(axis.marks.filter((v) => v !== 1), styled("grid", {})),
      Plot.ruleX([1], styled("one", {})),
      Plot.axisX(axis.marks, { anchor: "bottom", tickSize: 0, tickPadding: 12, text: short, label: null }),
    ];
    const hits = [];
    const labels = groups.map((group, i) => {
      const [cell, y] = [group.cells[0], 15 + 30 * i];
      if (cell[LOW] !== null) marks.push(Plot.link([0], styled("line", { x1: cell[LOW], x2: cell[HIGH], y1: y, y2: y }, group.name)));
      marks.push(...marksOf(group.name, [{ x: cell[RATIO], y, call: cell[CALL] }]));
      hits.push([box.x + scales.x.apply(cell[RATIO]), box.y + y, group.name, describe(section, group.name, 0, cell)]);
      return curve(group.name, text(left - 12, box.y + y + 4, data.names[group.name].label, { class: "name end" }));
    });
    return picture(width, height, part(box, scales, marks) + labels.join(""), hits);
  }

  return { data, state, names, VERDICT, VALUE, RATIO, LOW, ROUNDS, absolute, ratio, compared, describe, times, figure, bytes, factor, geometric, known, panel, single, styled, valueAxis, ratioAxis, countAxis, linearAxis, reach, picture, legend, text, esc };
})();
