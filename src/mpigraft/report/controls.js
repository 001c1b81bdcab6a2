// The controls above the figures: baseline, configurations, filter, order, CSV and commands.
"use strict";
const Controls = (() => {
  const { data, state, names, VALUE, RATIO, LOW } = Charts;
  const every = (selector, from = document) => [...from.querySelectorAll(selector)];
  const at = (id) => document.getElementById(id);
  let page = null;

  // ---- the table at a glance, against another baseline

  const [glance, forest] = ["table.glance", "table.forest"].map((one) => document.querySelector(one));
  const kept = glance && [...glance.tBodies[0].rows].map((row) => ({ row, name: row.dataset.name, html: [...row.cells].map((c) => [c.className, c.innerHTML]) }));

  // The mean ratio on each layout, over the sizes that all layouts and configurations of a card have.
  function pooled(card, name) {
    const sections = data.cards[card].map((index) => data.sections[index]);
    const own = sections.flatMap((section) => Charts.compared(section).groups.map((group) => ({ group, section, sizes: section.sizes.filter((_, i) => group.cells[i]) })));
    const [all, common] = [new Set(sections.flatMap((s) => s.sizes)), own.reduce((left, { sizes }) => left.filter((s) => sizes.includes(s)), own.length ? own[0].sizes : [])];
    const ratio = ({ group, section }) => Charts.geometric(common.map((s) => group.cells[section.sizes.indexOf(s)][RATIO]));
    return { ratios: Charts.known(own.filter(({ group }) => group.name === name).map(ratio)), note: common.length < all.size ? `<small>over ${common.length} of ${all.size} sizes</small>` : "" };
  }

  function fillGlance() {
    if (!glance) return;
    for (const { row, name, html } of kept) {
      row.hidden = state.hidden.has(name);
      [...row.cells].forEach((td, i) => {
        if (state.baseline === data.baseline) [td.className, td.innerHTML] = html[i];
        else if (!i && name !== undefined) td.innerHTML = Charts.esc(name) + (name === state.baseline ? "<small>baseline</small>" : "");
        else if (i && name !== undefined) {
          const { ratios, note } = pooled(i - 1, name);
          const { lower, unit } = data.sections[data.cards[i - 1][0]];
          td.className = name === state.baseline ? "b" : "i";
          const ends = ratios.length > 1 ? `${Charts.times(Math.min(...ratios))} to ${Charts.times(Math.max(...ratios))}` : "";
          td.innerHTML = name === state.baseline ? "1" : ratios.length ? `${Charts.factor(Charts.geometric(ratios), lower, unit)}<small>${ends || Charts.times(ratios[0])}</small>${note}` : "";
        }
      });
    }
    if (forest) {
      forest.closest("figure").hidden = state.baseline !== data.baseline; // its intervals are known against that alone
      for (const row of forest.tBodies[0].rows) row.hidden = state.hidden.has(row.dataset.name);
    }
    const note = at("against");
    note.hidden = state.baseline === data.baseline;
    note.querySelector("span").textContent = `Ratios to ${state.baseline}, without intervals and verdicts: these are known against ${data.baseline} alone. For both: `;
    note.querySelector("code").textContent = `mpigraft report --baseline '${state.baseline.replace(/'/g, "'\\''")}'`;
  }

  // Configurations by the column that was chosen: the best first, then as they were.
  function sort(column) {
    const body = glance.tBodies[0];
    const value = ({ name }) => {
      const ratios = column === null || name === undefined ? [] : name === state.baseline ? [1] : pooled(column, name).ratios;
      if (!ratios.length) return Infinity;
      return data.sections[data.cards[column][0]].lower ? Charts.geometric(ratios) : 1 / Charts.geometric(ratios);
    };
    const order = kept.map((one, i) => [value(one), i]).sort((a, b) => (a[0] === b[0] ? a[1] - b[1] : a[0] < b[0] ? -1 : 1));
    for (const [, i] of order) body.append(kept[i].row);
    every("thead th", glance).forEach((th, i) => {
      if (i) th.setAttribute("aria-sort", column === i - 1 ? "ascending" : "none");
    });
  }

  // ---- filter

  function filter(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (text) => wanted.every((word) => text.toLowerCase().includes(word));
    let count = 0;
    for (const one of every("section.benchmark")) {
      one.hidden = !matches(one.dataset.benchmark);
      count += one.hidden ? 0 : 1;
      for (const link of every(`nav a[href="#${CSS.escape(one.id)}"]`)) link.hidden = one.hidden;
    }
    for (const one of every("[data-find]")) one.hidden = !matches(one.dataset.find);
    data.cards.forEach((sections, i) => {
      const { benchmark, metric, buffers } = data.sections[sections[0]];
      const gone = !matches(`${benchmark} ${metric} ${buffers}`);
      if (glance) for (const row of glance.rows) if (row.cells.length > i + 1) row.cells[i + 1].hidden = gone;
    });
    at("filtered").textContent = wanted.length ? `${count} of ${data.cards.length} benchmarks` : "";
  }

  // ---- CSV: every figure of the page

  // A text that begins like a formula is a formula to a spreadsheet.
  const field = (value) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };

  function csv() {
    const lines = [["benchmark", "layout", "buffers", "metric", "unit", "configuration", "bytes", "value", "baseline", "baseline_value", "ratio", "low", "high", "verdict", "rounds"]];
    for (const section of data.sections) {
      const { base, groups } = Charts.compared(section);
      const head = [section.benchmark, section.layout, section.buffers, section.metric, section.unit];
      section.sizes.forEach((size, i) => {
        if (base[i] !== null) lines.push([...head, state.baseline, size, base[i], state.baseline, base[i], 1, null, null, "baseline", null]);
        for (const group of groups) {
          const cell = group.cells[i];
          if (cell) lines.push([...head, group.name, size, cell[VALUE], state.baseline, base[i], cell[RATIO], cell[LOW], cell[LOW + 1], Charts.VERDICT[cell[LOW + 2]][1], cell[LOW + 3]]);
        }
      });
    }
    return lines.map((line) => line.map(field).join(",")).join("\r\n") + "\r\n";
  }

  function save(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function copy(button) {
    const code = at(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.firstChild.data = "Copied";
    } catch {
      const range = document.createRange(); // no permission: the reader's own keys copy it
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.firstChild.data = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.firstChild.data = "Copy"; }, 3000);
  }

  function start(given) {
    page = given;
    for (const button of every("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", () => copy(button));
    }
    const panel = at("controls");
    if (!panel) return;
    panel.hidden = false;
    at("baseline").addEventListener("change", (event) => {
      state.baseline = event.target.value;
      page.redraw();
    });
    at("filter").addEventListener("input", (event) => filter(event.target.value));
    at("order").addEventListener("change", (event) => sort(event.target.value === "" ? null : Number(event.target.value)));
    at("csv").addEventListener("click", () => save("mpigraft.csv", csv()));
    for (const box of every("[data-shown]", panel)) {
      box.addEventListener("change", () => {
        const name = names[Number(box.dataset.shown)];
        if (box.checked) state.hidden.delete(name);
        else state.hidden.add(name);
        page.redraw();
      });
    }
    for (const button of every("[data-only]", panel)) {
      button.addEventListener("click", () => page.isolate(names[Number(button.dataset.only)]));
    }
  }

  return { start, fillGlance, csv };
})();
