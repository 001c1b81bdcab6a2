// What the page's charts use of Observable Plot; `tools/bundle-plot` makes one file of it.
export { areaY, axisX, axisY, dot, line, link, plot, rect, ruleX, ruleY, scale, text } from "@observablehq/plot";
