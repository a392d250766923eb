// The map from virtual servers through policies and pools to members.

import { h } from "../dom.js";
import { controls, dots, link, mark, wanted } from "../parts.js";
import { state } from "../state.js";

export const title = "Map";
export const needs = () => [];

/** Rows at first, and that are added when the end is seen; most rows of a page. */
const [ROWS, ROWS_MAX] = [20, 200];

export function watches(_, memory) {
  memory.rows ??= ROWS;
  return wanted("map", memory);
}

export function draw(_, memory, __, again) {
  const { map } = state.document;
  if (!map) return null;
  const row = (name) => {
    const server = map.items[name];
    return h("div", { class: "card row", "data-key": name },
      h("div", { class: "column" }, h("p", null, link("servers", name), " ", mark([server.state, server.shown])),
        h("p", { class: "quiet mono" }, server.listen.join(", "))),
      h("div", { class: "column" }, server.policies.map((policy) => h("a", { class: "chip", href: `#/policies/${encodeURIComponent(policy.name)}` },
        `${policy.name}: ${policy.rules} ${policy.rules === 1 ? "rule" : "rules"}`))),
      h("div", { class: "column" }, server.pools.map((pool) => h("div", { class: "chip" },
        link("pools", pool.name), " ", mark([pool.state, pool.shown]), dots(pool)))));
  };
  const isWhole = map.order.length < memory.rows || map.pages === 1 || memory.rows >= ROWS_MAX;
  const more = () => {
    memory.rows = Math.min(map.order.length + ROWS, ROWS_MAX);
    again();
  };
  return h("div", null, h("h1", null, "Map"), controls(map, memory, again),
    h("p", { class: "quiet" }, "Virtual server → policies → pools with their members. Search for a name, an address or a state (down, degraded)."),
    h("div", { class: "map" }, map.order.map(row)),
    !isWhole && h("p", null, h("button", { type: "button", "data-more": "", onclick: more }, "More")));
}
