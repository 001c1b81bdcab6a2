// What a reader can do with the page: choose, filter, sort, point at, copy, print. Charts are drawn
// when they come into view.
"use strict";
(() => {
  const { data, state, names, VERDICT, VALUE, RATIO, LOW } = Charts;
  const root = document.documentElement;
  const boxes = [...document.querySelectorAll(".chart")];
  const tables = [...document.querySelectorAll(".matrix")];
  const at = (id) => document.getElementById(id);
  const every = (selector, from = document) => [...from.querySelectorAll(selector)];
  const hits = new WeakMap(); // of a box: what is under the pointer

  // ---- drawing

  function drawBox(box, width, compact) {
    const wide = width || Math.max(Math.floor(box.clientWidth), 280);
    const { kind, section, view, plot } = box.dataset;
    const figures = section ? data.sections[section] : view ? data.views[view] : data.plots[plot];
    const [svg, points] = { ...Charts, ...Plots, scaling: Scaling.draw }[kind](figures, wide, compact);
    box.innerHTML = svg;
    hits.set(box, points);
    box.dataset.drawn = "";
  }

  const drawn = () => boxes.filter((box) => "drawn" in box.dataset);
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      if (entry.target.matches(".matrix")) fillMatrix(entry.target);
      else drawBox(entry.target);
    }
  }, { rootMargin: "400px 0px" });

  // What is drawn already is drawn again when it next comes into view.
  function redraw() {
    Scaling.forget();
    for (const box of boxes) { hide(); watcher.unobserve(box); watcher.observe(box); }
    for (const table of tables) { watcher.unobserve(table); watcher.observe(table); }
    for (const one of every(".all[open]")) fillTables(one);
    fillGlance();
  }

  // All figures of a section; its boxes that scroll are known from then on.
  function fillTables(details) {
    const body = details.querySelector("div");
    body.innerHTML = Tables.all(data.sections[Number(details.dataset.section)]);
    for (const one of every(".scroll", body)) scrolling.observe(one);
  }

  function isolate(name) {
    state.isolated = state.isolated === name ? null : name;
    for (const one of every(".chart .curve")) {
      one.classList.toggle("dim", state.isolated !== null && names[Number(one.dataset.name)] !== state.isolated);
    }
    for (const button of every("#controls [data-only]")) {
      button.setAttribute("aria-pressed", String(names[Number(button.dataset.only)] === state.isolated));
    }
  }

  // ---- the tooltip

  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  const hide = () => { tip.hidden = true; };
  function show(lines, box) {
    tip.textContent = lines.join("\n");
    tip.hidden = false;
    const [w, h] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = `${Math.max(6, Math.min(box.left, window.innerWidth - w - 6))}px`;
    tip.style.top = `${box.top - h - 6 > 0 ? box.top - h - 6 : box.bottom + 6}px`;
  }
  const around = (event) => ({ left: event.clientX + 10, top: event.clientY, bottom: event.clientY + 10 });

  for (const box of boxes) {
    box.addEventListener("pointermove", (event) => {
      const place = box.getBoundingClientRect();
      const [x, y] = [event.clientX - place.left, event.clientY - place.top];
      let [best, least] = [null, 18 ** 2];
      for (const hit of hits.get(box) || []) {
        const far = (hit[0] - x) ** 2 + (hit[1] - y) ** 2;
        if (far < least) [best, least] = [hit, far];
      }
      if (best) show(best[3], around(event));
      else hide();
    });
    box.addEventListener("pointerleave", hide);
    box.addEventListener("click", (event) => {
      const curve = event.target.closest(".curve");
      if (curve) isolate(names[Number(curve.dataset.name)]);
      else if (state.isolated !== null) isolate(state.isolated);
    });
  }

  // ---- the verdict matrices: another baseline's ratios, a tooltip, and arrow keys

  const CLASS = (call, ratio) => (call === "f" || call === "s" ? call + (1 + (Math.max(ratio, 1 / ratio) >= 1.25) + (Math.max(ratio, 1 / ratio) >= 2)) : call);
  const bare = (ratio) => (ratio < 1 ? Charts.times(ratio).replace(/^0/, "") : Charts.times(ratio));
  const groupsOf = new WeakMap();

  function fillMatrix(table) {
    const section = data.sections[Number(table.dataset.section)];
    const { groups } = Charts.compared(section);
    groupsOf.set(table, groups);
    const rows = [...table.tBodies[0].rows];
    rows.forEach((row, r) => {
      const group = groups[r];
      row.hidden = !group || state.hidden.has(group.name);
      if (!group || row.dataset.name === group.name && row.dataset.against === state.baseline) return;
      if (row.dataset.against === undefined && state.baseline === data.baseline) return;
      [row.dataset.name, row.dataset.against] = [group.name, state.baseline];
      row.cells[0].textContent = group.name;
      section.sizes.forEach((_, i) => {
        const [td, cell] = [row.cells[i + 1], group.cells[i]];
        td.className = cell ? CLASS(cell[4], cell[RATIO]) : "n";
        td.innerHTML = cell ? `<b>${VERDICT[cell[4]][1]} </b>${bare(cell[RATIO])}` : '<span class="vh">not measured</span>';
      });
    });
  }

  for (const table of tables) {
    const section = data.sections[Number(table.dataset.section)];
    const showCell = (cell) => {
      const group = (groupsOf.get(table) || section.groups)[cell.parentElement.sectionRowIndex];
      const i = cell.cellIndex - 1;
      if (!group || !group.cells[i]) return hide();
      const lines = Charts.describe(section, group.name, section.sizes[i], group.cells[i]);
      lines[1] += `, baseline ${Charts.figure(Charts.compared(section).base[i])}`;
      return show(lines, cell.getBoundingClientRect());
    };
    const first = table.querySelector("tbody td");
    if (first) first.tabIndex = 0;
    const cellOf = (event) => event.target.closest("tbody td");
    table.addEventListener("mouseover", (event) => (cellOf(event) ? showCell(cellOf(event)) : hide()));
    table.addEventListener("mouseleave", hide);
    table.addEventListener("focusin", (event) => cellOf(event) && showCell(cellOf(event)));
    table.addEventListener("focusout", hide);
    table.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (event.key === "Escape") hide();
      const cell = cellOf(event);
      if (!step || !cell) return;
      const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      const row = rows[rows.indexOf(cell.parentElement) + step[0]];
      const next = row && cell.cellIndex + step[1] > 0 && row.cells[cell.cellIndex + step[1]];
      if (!next) return;
      event.preventDefault();
      cell.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  for (const map of every("svg.heat[data-map]")) {
    const figures = data.maps[Number(map.dataset.map)];
    const grid = map.querySelector("g");
    const pace = (value, worse) => {
      if (value === null) return ["not measured"];
      const how = worse > 1.05 ? `${Charts.times(worse)} times slower than` : worse < 1 / 1.05 ? `${Charts.times(1 / worse)} times faster than` : "like";
      return [`${Charts.figure(value)} ${figures.unit}`, `${how} the median link`];
    };
    const point = (event) => {
      const on = new DOMPoint(event.clientX, event.clientY).matrixTransform(grid.getScreenCTM().inverse());
      const [row, column] = [Math.floor(on.y), Math.floor(on.x)];
      const worse = figures.worse[row] && figures.worse[row][column];
      if (worse === undefined || row === column) return hide();
      return show([`${figures.nodes[row]} to ${figures.nodes[column]}`, ...pace(figures.values[row][column], worse)], around(event));
    };
    map.addEventListener("pointermove", point);
    map.addEventListener("pointerdown", point);
    map.addEventListener("pointerleave", hide);
  }
  // Focus scrolls a cell into view, so the tooltip follows the focused cell and leaves others.
  window.addEventListener("scroll", () => {
    const cell = document.activeElement;
    if (!tip.hidden && cell && cell.matches(".matrix td")) show(tip.textContent.split("\n"), cell.getBoundingClientRect());
    else hide();
  }, { passive: true, capture: true });

  // ---- size, theme and print

  const PRINT_WIDTH = 680; // A4 less its margins, in CSS pixels
  let [opened, waiting, lastWidth] = [[], 0, window.innerWidth];
  window.addEventListener("resize", () => {
    if (window.innerWidth === lastWidth) return;
    lastWidth = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 120);
  });
  window.addEventListener("beforeprint", () => {
    root.classList.add("print");
    // Every figure goes on paper, of layouts those over nodes unless the reader opened them; where
    // a configuration comes from stays as the reader left it.
    const folded = (one) => one.matches(".over") || one.closest(".over:not([open])");
    opened = every(".benchmark details:not([open]), #nodes details:not([open]), #findings details:not([open])").filter((one) => !folded(one));
    for (const one of opened) one.open = true;
    for (const one of every(".all")) fillTables(one);
    for (const box of boxes) drawBox(box, PRINT_WIDTH, true);
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("print");
    for (const one of opened) one.open = false;
    redraw();
  });

  // What scrolls is reached with the keyboard; what does not is no stop on the way.
  const scrolling = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const wide = target.scrollWidth > target.clientWidth;
      if (wide) {
        target.tabIndex = 0;
        target.setAttribute("role", "group");
        target.setAttribute("aria-label", (target.querySelector("caption") || target).textContent.slice(0, 120));
      } else for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
    }
  });
  for (const one of every(".scroll")) scrolling.observe(one);

  for (const one of every(".all")) {
    one.hidden = false;
    one.addEventListener("toggle", () => { if (one.open) fillTables(one); });
  }
  Controls.start({ redraw, isolate, fillGlance: () => fillGlance() });
  function fillGlance() { Controls.fillGlance(); }
  for (const box of boxes) watcher.observe(box);
  if (boxes.length) drawBox(boxes[0]);
  root.dataset.charts = String(boxes.length);
})();
