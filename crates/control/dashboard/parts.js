// Elements that several views use.

import { h } from "./dom.js";
const ROWS = 50;
/** A search is done when nothing was typed for this time. */
const TYPING_MS = 250;

/** A state: its colour, its shape and its word. */
export function mark([word, kind]) {
  return h("span", { class: `state ${kind}` }, word);
}

/** Why something is not up. */
export function reason({ why, shown }) {
  return why && h("ul", { class: "problems" }, h("li", { class: shown === "warn" ? "warn" : null }, why));
}

/** One figure with its name. */
export function tile(name, value, unit) {
  return h("dl", { class: "tile" }, h("dt", null, name), h("dd", null, value, unit ? h("small", null, ` ${unit}`) : null));
}

/** A table. Each column: a name, whether it is a number, and how a cell is made of an item. */
export function table(caption, columns, items, keyOf, empty) {
  if (items.length === 0) return h("p", { class: "quiet" }, empty ?? "None.");
  const head = columns.map(({ name, isNumber }) => h("th", { scope: "col", class: isNumber ? "right" : null }, name));
  const row = (item) => h("tr", { "data-key": keyOf(item) }, columns.map(({ cell, isNumber, isWide }, index) => (
    index === 0
      ? h("th", { scope: "row", class: isWide ? "wrap" : null }, cell(item))
      : h("td", { class: isNumber ? "right" : isWide ? "wrap" : null }, cell(item)))));
  return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", null, caption), h("thead", null, h("tr", null, head)), h("tbody", null, items.map(row))));
}

/** What a stream shows of a list. */
export function wanted(view, memory, name) {
  return { view, name, search: memory.search?.trim(), page: (memory.page ?? 0) + 1, rows: memory.rows };
}

/** A search field and pages for a list of which the stream has one page. `again` follows the stream anew. */
export function controls(rows, memory, again) {
  const turn = (to) => () => {
    memory.page = to;
    again();
  };
  const search = (event) => {
    Object.assign(memory, { search: event.target.value, page: 0 });
    clearTimeout(memory.typing);
    memory.typing = setTimeout(again, TYPING_MS);
  };
  return bar(memory, search, `${rows.found} of ${rows.total}`, [rows.page - 1, rows.pages], turn);
}

function bar(memory, search, found, [page, pages], turn) {
  return h("div", { class: "bar", role: "search" },
    h("input", { type: "search", placeholder: "Search", "aria-label": "Search", value: memory.search ?? "", oninput: search }),
    h("span", { class: "quiet", role: "status" }, found),
    pages > 1 && [
      h("button", { type: "button", disabled: page === 0, onclick: turn(page - 1) }, "Previous"),
      h("span", { class: "quiet" }, `page ${page + 1} of ${pages}`),
      h("button", { type: "button", disabled: page === pages - 1, onclick: turn(page + 1) }, "Next"),
    ]);
}

/** A search field and pages for long lists. `memory` keeps both while the view is open. */
export function browse(items, textOf, memory, redraw) {
  const words = (memory.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? items.filter((item) => words.every((word) => textOf(item).toLowerCase().includes(word))) : items;
  const pages = Math.max(1, Math.ceil(found.length / ROWS));
  const page = Math.min(memory.page ?? 0, pages - 1);
  const turn = (to) => () => {
    memory.page = to;
    redraw();
  };
  const search = (event) => {
    Object.assign(memory, { search: event.target.value, page: 0 });
    redraw();
  };
  const controls = bar(memory, search, `${found.length} of ${items.length}`, [page, pages], turn);
  return { controls, shown: found.slice(page * ROWS, (page + 1) * ROWS) };
}

/** A bar: how much of the most a figure is. */
export function share(figure, most, label) {
  const width = ((figure / most) * 100).toFixed(1);
  return h("svg", {
    class: "track", viewBox: "0 0 100 1", preserveAspectRatio: "none", role: "meter",
    "aria-label": label, "aria-valuemin": "0", "aria-valuemax": String(most), "aria-valuenow": String(figure),
  }, h("path", { d: `M0 0H${width}V1H0Z` }));
}

/** The members of a pool, one mark each. */
export function dots(pool) {
  const text = pool.marks.map(({ member, state }) => `${member} ${state}`);
  return h("div", { class: "members", role: "img", "aria-label": text.join(", ") || "no members" },
    pool.marks.map(({ member, state, shown }) => h("span", { class: `dot ${shown}`, title: `${member}: ${state}` })),
    pool.members > pool.marks.length && h("span", { class: "quiet" }, `and ${pool.members - pool.marks.length} more`));
}

/** A link to a view of one thing. */
export function link(view, name, text) {
  return h("a", { href: `#/${view}/${encodeURIComponent(name)}` }, text ?? name);
}
