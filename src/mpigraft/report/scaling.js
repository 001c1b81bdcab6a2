// The scaling view: values over nodes or ranks, a curve a configuration, and their ratio to the
// baseline as small multiples, a column for each class of message sizes.
"use strict";
const Scaling = (() => {
  const { data, state, VALUE, RATIO, LOW, ROUNDS } = Charts;
  const HIGH = LOW + 1;
  const CALL = LOW + 2;

  // The points of every configuration at one size: of values, or of ratios.
  function curves(view, size, ratios) {
    const points = new Map();
    view.at.forEach((index, k) => {
      if (index === null) return; // nothing was compared there
      const section = data.sections[index];
      const { base, band, groups } = Charts.compared(section);
      const i = section.sizes.indexOf(size);
      if (i < 0) return;
      const own = { name: state.baseline, band, cells: base.map((v) => (v === null ? null : [v, 1, null, null, "n", 1, null])) };
      for (const group of ratios ? groups : [...groups, own]) {
        const cell = group.cells[i];
        if (state.hidden.has(group.name) || !cell || cell[VALUE] === null) continue;
        const pair = ratios ? [cell[LOW], cell[HIGH]] : (group.band && group.band[i]) || [null, null];
        if (!points.has(group.name)) points.set(group.name, view.x.map(() => null));
        const words = Charts.describe(section, group.name, size, cell);
        words.splice(1, 0, `${view.x[k]} ${view.axis}, layout ${section.layout}`);
        points.get(group.name)[k] = {
          x: view.x[k], y: ratios ? cell[RATIO] : cell[VALUE], low: pair[0], high: pair[1], call: ratios ? cell[CALL] : null, words,
        };
      }
    });
    return [...points].map(([name, own]) => ({ name, points: own }));
  }

  const reach = (drawn) => drawn.flatMap((c) => Charts.reach(c.points.filter(Boolean)));
  const every = () => data.views.flatMap((view) => view.sizes.flatMap(([, size]) => reach(curves(view, size, true))));
  let shared = null; // one axis for all ratios of the page, so that rows can be compared

  function draw(view, width, compact) {
    shared = shared || Charts.ratioAxis(every());
    const columns = view.sizes.map(([name, size]) => ({ name, size, values: curves(view, size, false), ratios: curves(view, size, true) }));
    const shown = [...new Set(columns.flatMap((c) => c.values.map((one) => one.name)))].sort();
    if (!shown.length) return Charts.picture(width, 40, Charts.text(4, 20, "No configuration is shown."), []);
    const beside = columns.length > 1 && width >= 500 * columns.length;
    const across = beside ? 2 * columns.length : Math.max(1, Math.min(columns.length, Math.floor(width / 210)));
    const narrow = width < 520 && 20 + 6.4 * Math.max(...shown.map((n) => data.names[n].label.length)) > 90;
    const tall = compact ? 70 : 104;
    const named = 20 + 6.4 * Math.max(...shown.map((n) => data.names[n].label.length));
    // Names stand at the ends of all curves where they are short, else where a row or its half ends.
    const short = named <= 90;
    const halves = beside ? 2 : 1;
    const ends = (place) => short || (place + 1) % (across / halves) === 0;
    const wide = (width - (short || narrow ? 0 : halves * (Math.min(named, 170) - 12))) / across;
    const hits = [];
    const parts = [];
    // A row of values above one of ratios; where a row is shorter, both of a size side by side.
    const both = columns.map((c) => [[c, false], [c, true]]);
    const panels = across < columns.length ? both.flat() : [0, 1].flatMap((k) => both.map((pair) => pair[k]));
    const rows = Math.ceil(panels.length / across);
    panels.forEach(([column, ratios], i) => {
      const drawn = ratios ? column.ratios : column.values;
      const place = i % across;
      const right = short ? named : 12;
      const before = short || narrow ? 0 : Math.floor(place / (across / halves)) * (Math.min(named, 170) - 12);
      const box = { x: place * wide + before + 38, y: 22 + Math.floor(i / across) * (tall + 50), w: wide - 38 - right, h: tall };
      const what = ratios ? "ratio" : wide < 160 && view.unit ? view.unit : [view.metric, view.unit].filter(Boolean).join(", ");
      parts.push(Charts.panel(box, {
        xaxis: Charts.countAxis(view.x), yaxis: ratios ? shared : Charts.valueAxis(drawn.flatMap((c) => c.points.filter(Boolean).map((p) => p.y))),
        ratio: ratios, margin: ratios ? data.margin : 0, curves: drawn, labels: ends(place) && !narrow, brief: true,
        title: Charts.esc(`${what}${column.size > 0 ? ` at ${Charts.bytes(column.size)}` : ""}`),
      }, hits));
      parts.push(Charts.text(box.x + box.w, box.y + tall + 28, view.axis, { class: "end" }));
    });
    const bottom = 22 + rows * (tall + 50) - 18;
    // Names at the ends of all curves are the key.
    const [key, below] = short && !narrow ? ["", 12] : Charts.legend(shown, bottom - 2, width - 90);
    return Charts.picture(width, bottom - 8 + below, parts.join("") + key, hits);
  }

  const forget = () => { shared = null; };
  return { draw, forget };
})();
