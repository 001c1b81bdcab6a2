// All figures of a section as tables, one for each configuration, from the figures of the charts:
// they are made when they are opened or printed, so that the page has each figure once.
"use strict";
const Tables = (() => {
  const { state, VERDICT, VALUE, RATIO, LOW, ROUNDS, esc, times, bytes } = Charts;
  const [HIGH, CALL, NEEDED] = [LOW + 1, LOW + 2, ROUNDS + 1];

  // Three significant digits, or all before the point; millions as M, as on the terminal.
  function number(value) {
    if (value === null) return "-";
    for (const [unit, letter] of [[1e9, "G"], [1e6, "M"]]) {
      if (Math.abs(value) >= unit) return `${+(value / unit).toPrecision(3)}${letter}`;
    }
    if (Math.abs(value) >= 99.95) return value.toFixed(0);
    if (value === 0) return "0";
    const whole = Math.floor(Math.log10(Math.abs(value)) + 1e-9);
    const text = value.toFixed(Math.min(Math.max(2 - whole, 0), 6));
    return Math.abs(+text) >= 10 ** (whole + 1) ? (+text).toFixed(Math.max(1 - whole, 0)) : text;
  }

  const interval = (cell) => {
    if (cell[LOW] === null) return cell[ROUNDS] > 1 && cell[CALL] !== "n" ? "unknown" : "-";
    return `[${times(cell[LOW])}, ${times(cell[HIGH])}]`;
  };

  function table(section, base, group) {
    const rows = section.sizes.map((size, i) => [size, base[i], group.cells[i]]).filter(([, , cell]) => cell);
    const rounds = new Set(rows.map(([, , cell]) => cell[ROUNDS]));
    const alike = rounds.size === 1;
    const heads = ["size", "baseline", "value", "ratio", "95 % interval", ...(alike ? [] : ["rounds"]), "rounds that would decide"];
    const [count] = rounds;
    const caption = `${group.name}, ${section.metric}${section.unit && ` in ${section.unit}`}` + (alike ? `, ${count} round${count === 1 ? "" : "s"} at each size` : "");
    const body = rows.map(([size, before, cell]) => {
      const figures = [number(before), number(cell[VALUE]), `${VERDICT[cell[CALL]][0]} ${times(cell[RATIO])}`.trim(), interval(cell), ...(alike ? [] : [cell[ROUNDS]]), cell[NEEDED] || ""];
      return `<tr><th scope="row">${bytes(size) || "-"}</th>${figures.map((text) => `<td>${esc(text)}</td>`).join("")}</tr>`;
    });
    return `<div class="scroll"><table class="figures"><caption>${esc(caption)}</caption><thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join("")}</tr></thead><tbody>${body.join("")}</tbody></table></div>`;
  }

  function all(section) {
    const { base, groups } = Charts.compared(section);
    const shown = groups.filter((group) => !state.hidden.has(group.name));
    return shown.map((group) => table(section, base, group)).join("") || "<p>No configuration is shown.</p>";
  }

  return { all };
})();
