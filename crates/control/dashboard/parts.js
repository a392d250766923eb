// Elements that several views use.

import { h } from "./dom.js";
import { memberState } from "./words.js";

const ROWS = 50;

/** A state: its colour, its shape and its word. */
export function mark([word, kind]) {
  return h("span", { class: `state ${kind}` }, word);
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
      ? h("th", { scope: "row" }, cell(item))
      : h("td", { class: isNumber ? "right" : isWide ? "wrap" : null }, cell(item)))));
  return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", null, caption), h("thead", null, h("tr", null, head)), h("tbody", null, items.map(row))));
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
  const controls = h("div", { class: "bar", role: "search" },
    h("input", {
      type: "search", placeholder: "Search", "aria-label": "Search", value: memory.search ?? "",
      oninput: (event) => {
        Object.assign(memory, { search: event.target.value, page: 0 });
        redraw();
      },
    }),
    h("span", { class: "quiet", role: "status" }, `${found.length} of ${items.length}`),
    pages > 1 && [
      h("button", { type: "button", disabled: page === 0, onclick: turn(page - 1) }, "Previous"),
      h("span", { class: "quiet" }, `page ${page + 1} of ${pages}`),
      h("button", { type: "button", disabled: page === pages - 1, onclick: turn(page + 1) }, "Next"),
    ]);
  return { controls, shown: found.slice(page * ROWS, (page + 1) * ROWS) };
}

/** The members of a pool, one mark each. */
export function dots(pool) {
  const shown = pool.members.slice(0, 60);
  const text = pool.members.map((member) => `${member.address} ${memberState(member)[0]}`);
  return h("div", { class: "members", role: "img", "aria-label": text.slice(0, 60).join(", ") || "no members" },
    shown.map((member) => h("span", { class: `dot ${memberState(member)[1]}`, title: `${member.address}: ${memberState(member)[0]}` })),
    pool.members.length > shown.length && h("span", { class: "quiet" }, `and ${pool.members.length - shown.length} more`));
}

/** A link to a view of one thing. */
export function link(view, name, text) {
  return h("a", { href: `#/${view}/${encodeURIComponent(name)}` }, text ?? name);
}
