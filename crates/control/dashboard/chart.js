// Line charts in SVG. The text beside each chart describes it, also for screen readers.

import { h } from "./dom.js";

/** Between two points. */
const STEP_S = 2;

/** A line over the points (numbers or null), with its scales, as wide as its card. */
export function chart(title, points, format, kind) {
  const known = points.filter((point) => point !== null);
  const top = Math.max(...known, 0);
  const now = points.at(-1) ?? null;
  const text = known.length === 0 ? "nothing yet" : `now ${now === null ? "none" : format(now)}, at most ${format(top)}`;
  return h("div", { class: "card" },
    h("p", { class: "caption" }, h("strong", null, title), h("span", null, text)),
    h("svg", { class: "chart", viewBox: "0 0 300 100", preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${text}` },
      [0, 50, 100].map((y) => h("line", { class: "grid", x1: 0, x2: 300, y1: y, y2: y })),
      lines(points, 300, 100, top, kind)),
    h("p", { class: "axis", "aria-hidden": "true" },
      h("span", null, points.length > 1 ? ago((points.length - 1) * STEP_S) : ""), h("span", null, "now")));
}

function ago(seconds) {
  return seconds < 60 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
}

/** A small line without numbers. */
export function spark(points) {
  const top = Math.max(...points.filter((point) => point !== null), 0);
  return h("svg", { class: "spark", viewBox: "0 0 90 22", preserveAspectRatio: "none", "aria-hidden": "true" },
    lines(points, 90, 22, top));
}

function lines(points, width, height, top, kind) {
  const step = width / Math.max(points.length - 1, 1);
  const y = (value) => (top > 0 ? height - (value / top) * (height - 4) : height).toFixed(1);
  let [path, from] = ["", null];
  const areas = [];
  points.forEach((value, index) => {
    const x = (index * step).toFixed(1);
    if (value === null) {
      from = null;
      return;
    }
    path += from === null ? `M${x} ${y(value)}` : `L${x} ${y(value)}`;
    from ??= x;
    areas.push([x, y(value)]);
  });
  if (areas.length < 2) return [];
  const area = `M${areas[0][0]} ${height}${areas.map(([x, at]) => `L${x} ${at}`).join("")}L${areas.at(-1)[0]} ${height}Z`;
  return [h("path", { class: `area ${kind ?? ""}`, d: area }), h("path", { class: `stroke ${kind ?? ""}`, d: path })];
}
