// The map from virtual servers through policies and pools to members.

import { h } from "../dom.js";
import { browse, dots, link, mark } from "../parts.js";
import { state } from "../state.js";
import { poolState, serverState } from "../words.js";

export const title = "Map";
export const needs = ["policies"];

export function draw(_, memory, redraw) {
  const { pools, policies } = state;
  const ofServer = Map.groupBy(policies.flatMap((policy) => policy.virtual_servers.map((name) => ({ name, policy }))), (it) => it.name);
  const textOf = (server) => `${server.name} ${server.pools.join(" ")} ${serverState(server, pools)[0]} ${
    server.pools.flatMap((name) => pools.get(name)?.members.map((member) => member.address) ?? []).join(" ")}`;
  const { controls, shown } = browse(state.servers, textOf, memory, redraw);
  const row = (server) => h("div", { class: "card row", "data-key": server.name },
    h("div", { class: "column" }, h("p", null, link("servers", server.name), " ", mark(serverState(server, pools))),
      h("p", { class: "quiet mono" }, server.listen.join(", "))),
    h("div", { class: "column" }, (ofServer.get(server.name) ?? []).map(({ policy }) => h("a", { class: "chip", href: `#/policies/${encodeURIComponent(policy.name)}` },
      `${policy.name}: ${policy.rules.length} ${policy.rules.length === 1 ? "rule" : "rules"}`))),
    h("div", { class: "column" }, server.pools.map((name) => pools.get(name)).filter(Boolean).map((pool) => h("div", { class: "chip" },
      link("pools", pool.name), " ", mark(poolState(pool)), dots(pool)))));
  return h("div", null, h("h1", null, "Map"), controls,
    h("p", { class: "quiet" }, "Virtual server → policies → pools with their members. Search for a name, an address or a state (down, degraded)."),
    h("div", { class: "map" }, shown.map(row)));
}
