// Draws the report's charts from the figures in #curves, and lets the verdict matrices be read
// with pointer and keyboard. Colours come from the page's style, so light, dark and print agree.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("curves").textContent);
  const root = document.documentElement;
  const boxes = [...document.querySelectorAll(".chart")];
  const VERDICT = {
    f: ["▲", "faster", "triangle-up", "--faster"],
    s: ["▼", "slower", "triangle-down", "--slower"],
    e: ["=", "equivalent", "square", "--equal"],
    i: ["·", "inconclusive", "circle-open", "--open"],
  };
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const MARKS = ["circle", "square", "diamond", "triangle-up", "cross", "x"];
  const [SIZE, VALUE, RATIO, LOW, HIGH, CALL, ROUNDS, NEEDED] = [0, 1, 2, 3, 4, 5, 6, 7];
  const CONFIG = {
    displaylogo: false, responsive: false, modeBarButtons: [["toImage"]],
    toImageButtonOptions: { format: "svg", filename: "mpigraft" },
  };

  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const faint = (hex, alpha) => {
    const n = parseInt(hex.slice(1), 16);
    return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
  };
  // Plotly reads a little markup in its texts; a name must stay text.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
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
  const log = Math.log10;
  const known = (values) => values.filter((v) => v !== null && v > 0);

  function told(section, group, cell) {
    const [mark, verdict] = VERDICT[cell[CALL]];
    const lines = [
      group.name + (cell[SIZE] > 0 ? `, ${bytes(cell[SIZE])}` : ""),
      `${figure(cell[VALUE])} ${section.unit}`,
      `ratio ${times(cell[RATIO])}` + (cell[LOW] === null ? (cell[ROUNDS] > 1 ? ", interval unknown" : ", no interval") : ` [${times(cell[LOW])}, ${times(cell[HIGH])}]`),
      `${mark} ${verdict}, ${cell[ROUNDS]} round${cell[ROUNDS] === 1 ? "" : "s"}`,
    ];
    if (cell[NEEDED] !== null) lines.push(`about ${cell[NEEDED]} rounds would decide`);
    return lines;
  }

  // ---- axes

  function sizeAxis(sizes, step) {
    const seen = sizes.filter((s) => s > 0);
    const [low, high] = [log(Math.min(...seen)), log(Math.max(...seen))];
    const marks = [];
    for (let power = 0; 2 ** power <= Math.max(...seen); power += step) {
      if (2 ** power >= Math.min(...seen)) marks.push(2 ** power);
    }
    const pad = Math.max((high - low) * 0.025, 0.02);
    return {
      type: "log", range: [low - pad, high + pad], tickvals: marks, ticktext: marks.map(bytes),
      tickangle: 0, showgrid: false, zeroline: false, fixedrange: true, ticks: "outside", ticklen: 4,
      tickcolor: color("--rule"), linecolor: color("--rule"), showline: true,
    };
  }

  function logAxis(values) {
    const decades = [-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
    const each = (steps) => decades.flatMap((d) => steps.map((s) => +(s * 10 ** d).toPrecision(3)));
    return marked(known(values), (span) => each(span > 2.2 ? [1] : span > 1.2 ? [1, 3] : [1, 2, 5]));
  }

  function ratioAxis(values) {
    return marked(known(values).concat([0.8, 1.25]), (span) => {
      if (span > 2.2) return [1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1e3, 1e4];
      if (span > 1.1) return [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];
      if (span > 0.5) return [0.1, 0.2, 0.5, 1, 2, 5, 10];
      return span > 0.28 ? [0.5, 0.7, 1, 1.4, 2] : [0.8, 0.9, 1, 1.1, 1.2];
    });
  }

  function marked(values, choose) {
    const [low, high] = values.length ? [log(Math.min(...values)), log(Math.max(...values))] : [0, 1];
    const pad = Math.max((high - low) * 0.06, 0.01);
    const range = [low - pad, high + pad];
    const marks = choose(high - low).filter((v) => log(v) >= range[0] && log(v) <= range[1]);
    return {
      type: "log", range, tickvals: marks, ticktext: marks.map(short), fixedrange: true,
      gridcolor: color("--grid"), zeroline: false, showline: false, ticks: "",
    };
  }

  // A few wild intervals must not flatten all curves: the widest tenth may leave the panel.
  function common(pairs) {
    const width = (p) => (p[0] > 0 ? p[1] / p[0] : Infinity);
    return [...pairs].sort((a, b) => width(a) - width(b)).slice(0, Math.ceil(pairs.length * 0.9)).flat();
  }

  function band(x, pairs, fill, axes) {
    const at = pairs.map((pair, i) => [x[i], pair]).filter(([, pair]) => pair && pair[0] > 0);
    return {
      x: [...at.map(([s]) => s), ...at.map(([s]) => s).reverse()],
      y: [...at.map(([, p]) => p[1]), ...at.map(([, p]) => p[0]).reverse()],
      fill: "toself", fillcolor: fill, line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false, ...axes,
    };
  }

  function base(width, height, extra) {
    return {
      width, height, showlegend: false, hovermode: "closest", dragmode: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color("--soft") },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: color("--open"), activecolor: color("--ink") },
      hoverlabel: { bgcolor: color("--ink"), bordercolor: color("--ink"), font: { color: color("--paper") }, align: "left" },
      ...extra,
    };
  }

  // ---- absolute values: one line each, named at its end

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

  function lines(section) {
    const sizes = section.sizes;
    const first = { name: data.baseline, y: section.base, band: section.baseBand, ink: color("--ink"), variant: 0, width: 2.6,
      text: sizes.map((s, i) => [`${plain(data.baseline)} (baseline), ${bytes(s)}`, `${figure(section.base[i])} ${section.unit}`].join("<br>")) };
    return [...section.groups.map((group) => {
      const at = new Map(group.cells.map((c) => [c[SIZE], c]));
      const style = data.names[group.name];
      return {
        name: group.name, band: group.band, variant: style.variant, width: 1.7, ink: color(`--hue${style.hue}`),
        y: sizes.map((s) => (at.has(s) ? at.get(s)[VALUE] : null)),
        text: sizes.map((s) => (at.has(s) ? told(section, group, at.get(s)).map(plain).join("<br>") : "")),
      };
    }), first];
  }

  function absolute(section, width, compact) {
    const drawn = lines(section);
    const names = drawn.map((d) => data.names[d.name].label + (d.name === data.baseline ? ", baseline" : ""));
    const narrow = width < 520;
    const right = narrow ? 12 : Math.min(260, 40 + 6.7 * Math.max(...names.map((n) => n.length)));
    const legend = narrow ? 24 + 19 * Math.ceil(drawn.length / 2) : 0; // no room for names beside
    const height = Math.max(compact ? 220 : 380, 60 + 15 * drawn.length) + legend;
    const margin = { l: 46, r: right, t: 10, b: 34 + legend };
    const plot = height - margin.t - margin.b;
    const yaxis = logAxis(drawn.flatMap((d) => [...d.y, ...common((d.band || []).filter(Boolean))]));
    const [low, high] = yaxis.range;
    const ends = drawn.map((d) => d.y.reduce((last, v, i) => (v === null ? last : i), -1));
    const pixel = (v) => ((high - log(v)) / (high - low)) * plot;
    const gap = Math.min(15.5, plot / drawn.length);
    const wanted = drawn.map((d, i) => (ends[i] < 0 ? plot : pixel(d.y[ends[i]])));
    const placed = spread(wanted, gap, plot);
    const traces = drawn.filter((d) => d.band).map((d) => band(section.sizes, d.band, faint(d.ink, 0.11), {}));
    drawn.forEach((d) => traces.push({
      x: section.sizes, y: d.y, mode: "lines+markers", name: plain(data.names[d.name].label), showlegend: narrow, text: d.text, hovertemplate: "%{text}<extra></extra>",
      line: { color: d.ink, width: d.width, dash: DASHES[d.variant % DASHES.length] },
      marker: { color: d.ink, size: 4.5, symbol: MARKS[d.variant % MARKS.length] },
    }));
    const annotations = narrow ? [] : drawn.map((d, i) => (ends[i] < 0 ? null : {
      x: log(section.sizes[ends[i]]), y: log(d.y[ends[i]]), ax: 26, ay: placed[i] - wanted[i], text: plain(names[i]),
      xanchor: "left", yanchor: "middle", showarrow: true, arrowhead: 0, arrowwidth: 0.8, standoff: 4,
      arrowcolor: faint(d.ink, 0.55), font: { color: d.ink, size: 12 },
    })).filter(Boolean);
    return [traces, base(width, height, {
      margin, annotations, showlegend: narrow, legend: { orientation: "h", x: 0, y: -0.12, yanchor: "top", font: { size: 11 } }, xaxis: sizeAxis(section.sizes, width < 520 ? 5 : width < 760 ? 4 : 2), yaxis,
    })];
  }

  // ---- ratios: a small panel for each configuration

  function panelTraces(section, group, axes) {
    const cells = group.cells.filter((c) => c[SIZE] > 0 && c[RATIO] !== null);
    const x = cells.map((c) => c[SIZE]);
    const marks = cells.map((c) => VERDICT[c[CALL]]);
    const [first, last] = layoutRange(section);
    return [
      { x: [first, last], y: [1, 1], ...one(), ...axes },
      band(x, cells.map((c) => (c[LOW] === null ? null : [c[LOW], c[HIGH]])), faint(color("--soft"), 0.22), axes),
      {
        x, y: cells.map((c) => c[RATIO]), mode: "lines+markers", line: { color: color("--soft"), width: 1 },
        marker: { symbol: marks.map((m) => m[2]), color: marks.map((m) => color(m[3])), size: marks.map((m) => (m[1] === "inconclusive" ? 4 : 6)), line: { width: 1, color: marks.map((m) => color(m[3])) } },
        text: cells.map((c) => told(section, group, c).map(plain).join("<br>")),
        hovertemplate: "%{text}<extra></extra>", ...axes,
      },
    ];
  }

  // The 1.0 line is a trace: a shape would lie under the grid.
  const one = () => ({ mode: "lines", line: { color: color("--ink"), width: 1 }, hoverinfo: "skip" });
  const layoutRange = (section) => sizeAxis(section.sizes, 10).range.map((v) => 10 ** v);
  const reach = (group) => known([
    ...group.cells.map((c) => c[RATIO]),
    ...common(group.cells.filter((c) => c[LOW] !== null).map((c) => [c[LOW], c[HIGH]])),
  ]);

  function ratio(section, width, compact) {
    const groups = section.groups;
    const most = Math.max(1, Math.min(4, Math.floor(width / 215)));
    const rows = Math.ceil(groups.length / most);
    const columns = Math.ceil(groups.length / rows); // even rows: no panel is left alone
    const [panel, gapX, gapY, left, top, bottom] = [compact ? 68 : rows === 1 ? 160 : 118, 42, compact ? 36 : 44, 38, 26, 30];
    const height = top + rows * panel + (rows - 1) * gapY + bottom;
    const [inner, tall] = [width - left - 8, height - top - bottom];
    const wide = (inner - (columns - 1) * gapX) / columns;
    const near = groups.filter((g) => reach(g).every((v) => v >= 0.5 && v <= 2));
    const margin = section.margin || data.margin;
    const axisNear = () => ratioAxis(near.flatMap(reach));
    const axisFar = () => ratioAxis(groups.flatMap(reach));
    const layout = base(width, height, { margin: { l: left, r: 8, t: top, b: bottom }, annotations: [], shapes: [] });
    const traces = [];
    groups.forEach((group, i) => {
      const n = i === 0 ? "" : String(i + 1);
      const [column, row] = [i % columns, Math.floor(i / columns)];
      const x0 = (column * (wide + gapX)) / inner;
      const y1 = 1 - (row * (panel + gapY)) / tall;
      const lowest = i + columns >= groups.length;
      layout[`xaxis${n}`] = { ...sizeAxis(section.sizes, 10), domain: [x0, Math.min(1, x0 + wide / inner)], anchor: `y${n}`, showticklabels: lowest };
      layout[`yaxis${n}`] = { ...(near.includes(group) ? axisNear() : axisFar()), domain: [Math.max(0, y1 - panel / tall), y1], anchor: `x${n}`, tickfont: { size: 11 } };
      const shape = { xref: `x${n} domain`, yref: `y${n}`, x0: 0, x1: 1, layer: "below" };
      layout.shapes.push({ ...shape, type: "rect", y0: 1 / (1 + margin), y1: 1 + margin, fillcolor: color("--margin"), line: { width: 0 } });
      const call = VERDICT[group.curve[0]];
      layout.annotations.push({
        xref: `x${n} domain`, yref: `y${n} domain`, x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: 3, showarrow: false,
        text: `${plain(data.names[group.name].label)} <span style="color:${color(call[3])}">${call[0]} ${times(group.pooled)}</span>`,
        font: { size: 12, color: color("--ink") },
      });
      traces.push(...panelTraces(section, group, { xaxis: `x${n}`, yaxis: `y${n}` }));
    });
    return [traces, layout];
  }

  // ---- benchmarks without sizes: one row for each configuration

  function forest(section, width) {
    const groups = section.groups.filter((g) => g.cells.length && g.cells[0][RATIO] !== null);
    const names = groups.map((g) => data.names[g.name].label);
    const cells = groups.map((g) => g.cells[0]);
    const calls = cells.map((c) => VERDICT[c[CALL]]);
    const margin = section.margin || data.margin;
    const bar = (edge) => cells.map((c) => (c[edge] === null ? 0 : Math.abs(c[edge] - c[RATIO])));
    const trace = {
      x: cells.map((c) => c[RATIO]), y: names.map((_, i) => i), mode: "markers", cliponaxis: false,
      error_x: { type: "data", symmetric: false, array: bar(HIGH), arrayminus: bar(LOW), color: color("--soft"), thickness: 1.4, width: 0 },
      marker: { size: 9, symbol: calls.map((m) => m[2]), color: calls.map((m) => color(m[3])) },
      text: groups.map((g, i) => told(section, g, cells[i]).map(plain).join("<br>")), hovertemplate: "%{text}<extra></extra>",
    };
    const shape = { yref: "paper", y0: 0, y1: 1, layer: "below" };
    const height = 52 + 30 * groups.length;
    const line = { x: [1, 1], y: [-0.5, groups.length - 0.5], ...one() };
    return [[line, trace], base(width, height, {
      margin: { l: Math.min(width * 0.45, 24 + 6.8 * Math.max(...names.map((n) => n.length))), r: 16, t: 8, b: 34 },
      xaxis: ratioAxis(groups.flatMap(reach)),
      yaxis: { range: [groups.length - 0.5, -0.5], tickvals: names.map((_, i) => i), ticktext: names.map(plain), showgrid: false, zeroline: false, fixedrange: true, tickfont: { color: color("--ink") } },
      shapes: [
        { ...shape, type: "rect", x0: 1 / (1 + margin), x1: 1 + margin, fillcolor: color("--margin"), line: { width: 0 } },
      ],
    })];
  }

  function draw(width, compact) {
    for (const box of boxes) {
      const section = data.sections[Number(box.dataset.section)];
      const make = !section.curve ? forest : box.dataset.kind === "absolute" ? absolute : ratio;
      const [traces, layout] = make(section, width || Math.max(box.clientWidth, 280), compact);
      Plotly.react(box, traces, layout, CONFIG);
    }
  }

  // ---- a link of a heat map in words

  function pace(value, worse, unit) {
    if (value === null) return ["not measured"];
    const [slower, faster] = [worse > 1.05, worse < 1 / 1.05];
    const how = slower ? `${times(worse)} times slower than` : faster ? `${times(1 / worse)} times faster than` : "like";
    return [`${figure(value)} ${unit}`, `${how} the median link`];
  }

  // ---- the verdict matrices: a tooltip, and arrow keys from cell to cell

  function matrices() {
    const tip = document.body.appendChild(document.createElement("div"));
    tip.id = "tip";
    tip.setAttribute("role", "tooltip");
    tip.hidden = true;
    const hide = () => { tip.hidden = true; };
    const place = (cell) => {
      const at = cell.getBoundingClientRect();
      const [w, h] = [tip.offsetWidth, tip.offsetHeight];
      tip.style.left = `${Math.max(6, Math.min(at.left, window.innerWidth - w - 6))}px`;
      tip.style.top = `${at.top - h - 6 > 0 ? at.top - h - 6 : at.bottom + 6}px`;
    };
    for (const table of document.querySelectorAll(".matrix")) {
      const section = data.sections[Number(table.dataset.section)];
      const rows = [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")]);
      const show = (cell) => {
        const group = section.groups[Number(cell.parentElement.dataset.group)];
        const size = section.sizes[cell.cellIndex - 1];
        const found = group.cells.find((c) => c[SIZE] === size);
        if (!found) return hide();
        const base = section.base[cell.cellIndex - 1];
        const text = told(section, group, found);
        text[1] += `, baseline ${figure(base)}`;
        tip.textContent = text.join("\n");
        tip.hidden = false;
        place(cell);
      };
      rows.forEach((row, r) => row.forEach((cell, c) => {
        cell.tabIndex = r || c ? -1 : 0;
        cell.setAttribute("aria-describedby", "tip");
        cell.addEventListener("mouseenter", () => show(cell));
        cell.addEventListener("mouseleave", hide);
        cell.addEventListener("focus", () => show(cell));
        cell.addEventListener("blur", hide);
        cell.addEventListener("keydown", (event) => {
          const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
          if (event.key === "Escape") hide();
          const next = step && rows[r + step[0]] && rows[r + step[0]][c + step[1]];
          if (!next) return;
          event.preventDefault();
          cell.tabIndex = -1;
          next.tabIndex = 0;
          next.focus();
        });
      }));
    }
    for (const picture of document.querySelectorAll("svg.heat")) {
      const map = data.maps[Number(picture.dataset.map)];
      const grid = picture.querySelector("g");
      const show = (event) => {
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(grid.getScreenCTM().inverse());
        const [row, column] = [Math.floor(at.y), Math.floor(at.x)];
        const worse = map.worse[row] && map.worse[row][column];
        if (worse === undefined || row === column) return hide();
        tip.textContent = [`${map.nodes[row]} to ${map.nodes[column]}`, ...pace(map.values[row][column], worse, map.unit)].join("\n");
        tip.hidden = false;
        place({ getBoundingClientRect: () => ({ left: event.clientX + 10, top: event.clientY, bottom: event.clientY + 10 }) });
      };
      picture.addEventListener("pointermove", show);
      picture.addEventListener("pointerdown", show);
      picture.addEventListener("pointerleave", hide);
    }
    // Focus scrolls a cell into view, so the tooltip follows the focused cell and leaves others.
    window.addEventListener("scroll", () => {
      const cell = document.activeElement;
      if (!tip.hidden && cell && cell.matches(".matrix td")) place(cell);
      else hide();
    }, { passive: true, capture: true });
  }

  // ---- size, theme and print

  const PRINT_WIDTH = 680; // A4 less its margins, in CSS pixels
  let opened = [];
  let waiting = 0;
  let seen = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === seen) return;
    seen = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => draw(), 120);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  window.addEventListener("beforeprint", () => {
    root.classList.add("print");
    // Every figure goes on paper; where a configuration comes from stays as the reader left it.
    opened = [...document.querySelectorAll(".benchmark > details:not([open])")];
    for (const one of opened) one.open = true;
    draw(PRINT_WIDTH, true);
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("print");
    for (const one of opened) one.open = false;
    draw();
  });
  draw();
  matrices();
  root.dataset.charts = String(boxes.length);
})();
