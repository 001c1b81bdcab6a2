// Charts of their own figures, each in #curves as a plot: a history over campaigns, a law over ranks,
// the time of each rank of a profile.
"use strict";
const Plots = (() => {
  const { styled, single, linearAxis, ratioAxis, countAxis } = Charts;
  const DAY = 86400e3;

  // How many times better than the first campaign of its line each one is; changes are numbered.
  function history({ lines, changes }, width, compact) {
    const curves = lines.map(({ name, points }) => ({ name, points: points.map(([x, y, words]) => ({ x, y, words })) }));
    const points = curves.flatMap((c) => c.points);
    const times = [...new Set(points.map((p) => p.x))].sort((a, b) => a - b);
    const [first, last] = [times[0], times.at(-1)];
    const range = first === last ? [first - DAY, last + DAY] : [first, last];
    const day = (time) => new Date(time).toISOString().slice(0, 10);
    const marks = [
      Plot.ruleX(changes, styled("change", { x: (d) => d[0] })),
      Plot.text(changes, styled("mid", { x: (d) => d[0], text: (d) => String(d[1]), frameAnchor: "top", dy: -12 })),
    ];
    const xaxis = () => linearAxis(range, times, day);
    return single(width, compact, { xaxis, yaxis: { ...ratioAxis(points.map((p) => p.y), 1.1), text: (v) => `${v}x` }, ratio: true, curves, marks });
  }

  // What was measured is solid; what was not is on a ground of its own that says so, its line is
  // dashed and its marks are hollow.
  function growth({ unit, last, law, measured, predicted }, width, compact) {
    const every = [...measured, ...predicted];
    const top = 1.15 * Math.max(...every.map((p) => p[3]));
    const [axis, reach] = [countAxis([...new Set(every.map((p) => p[0]))]), Math.max(...every.map((p) => p[0]))];
    const line = (points, dashes) => Plot.line(points, styled("law", { x: (d) => d[0], y: (d) => Math.max(d[1], 0), strokeDasharray: dashes }));
    const dots = (points, klass) => Plot.dot(points, styled(klass, { x: (d) => d[0], y: (d) => d[1], r: 4 }));
    const marks = [
      ...(reach > last ? [
        Plot.rect([0], styled("margin", { x1: last, x2: 10 ** axis.range[1], y1: 0, y2: top })),
        Plot.text(["predicted, not measured"], styled("note", { text: (d) => d, frameAnchor: "top-right", textAnchor: "end", dx: -4, dy: 4 })),
      ] : []),
      Plot.text([unit], styled("note", { text: (d) => d, frameAnchor: "top-left", textAnchor: "start", dx: 4, dy: 4 })),
      Plot.text(["ranks"], styled("note", { text: (d) => d, frameAnchor: "bottom-right", textAnchor: "end", dx: -4, dy: -4 })),
      line(law.filter((d) => d[0] <= last), null),
      line(law.filter((d) => d[0] >= last), "6 5"),
      Plot.link(every, styled("one", { x1: (d) => d[0], x2: (d) => d[0], y1: (d) => d[2], y2: (d) => d[3] })),
      dots(measured, "measured"), dots(predicted, "predicted"),
    ];
    const points = every.map(([x, y, , , words]) => ({ x, y, words: [words] }));
    return single(width, compact, { xaxis: () => axis, yaxis: linearAxis([0, top]), marks, points, height: 280 });
  }

  // A bar for each rank: its time in MPI, within its run time.
  function ranks({ levels, bars }, width, compact) {
    const gap = bars.length * 5 < width ? 0.15 : 0;
    const column = (klass, place) => Plot.rect(bars, styled(klass, { x1: (_, k) => k + gap, x2: (_, k) => k + 1 - gap, y1: 0, y2: (d) => d[place], title: (d) => d[3] }));
    const apart = Math.ceil((40 * bars.length) / width);
    const axis = linearAxis([0, bars.length], bars.map((_, k) => k + 0.5).filter((_, k) => k % apart === 0), (at) => String(bars[Math.floor(at)][0]));
    const yaxis = linearAxis([0, levels.at(-1)[0]], levels.map(([value]) => value), (value) => levels.find((one) => one[0] === value)[1]);
    return single(width, compact, { xaxis: () => axis, yaxis, marks: [column("run", 1), column("moving", 2)], height: 200 });
  }

  return { history, growth, ranks };
})();
