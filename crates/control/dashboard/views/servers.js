// The list of virtual servers, and the details of one.

import { chart, spark } from "../chart.js";
import { h } from "../dom.js";
import { browse, dots, link, mark, table, tile } from "../parts.js";
import { levels, series, state } from "../state.js";
import { bytes, count, poolState, rate, serverState, span } from "../words.js";
import { rules } from "./policies.js";

export const title = "Virtual servers";
export const needs = ["policies"];

export function draw(name, memory, redraw) {
  return name === undefined ? list(memory, redraw) : one(name);
}

function list(memory, redraw) {
  const { pools } = state;
  const textOf = (server) => `${server.name} ${server.listen.join(" ")} ${server.pools.join(" ")} ${serverState(server, pools)[0]}`;
  const { controls, shown } = browse(state.servers, textOf, memory, redraw);
  return h("div", null, h("h1", null, "Virtual servers"), controls, table("Virtual servers", [
    { name: "Name", cell: (server) => link("servers", server.name) },
    { name: "State", cell: (server) => mark(serverState(server, pools)) },
    { name: "Type", cell: (server) => server.type },
    { name: "Listens on", cell: (server) => server.listen.join(", ") || "–" },
    { name: "Pool", cell: (server) => (server.pool ? link("pools", server.pool) : "–") },
    { name: "Requests/s", isNumber: true, cell: (server) => rate(server.rates.requests_per_second) },
    { name: "Last minutes", cell: (server) => spark(series(server.name, "requests")) },
    { name: "Connections", isNumber: true, cell: (server) => count(server.connections_open) },
    { name: "5xx", isNumber: true, cell: (server) => count(server.responses?.["5xx"] ?? 0) },
    { name: "P50", isNumber: true, cell: (server) => span(server.request_duration?.p50_ms) },
    { name: "P99", isNumber: true, cell: (server) => span(server.request_duration?.p99_ms) },
  ], shown, (server) => server.name, "No virtual server matches."));
}

function one(name) {
  const server = state.servers.find((it) => it.name === name);
  if (!server) return h("div", null, h("h1", null, name), h("p", null, "There is no virtual server of this name. ", h("a", { href: "#/servers" }, "All virtual servers")));
  const policies = state.policies.filter((policy) => policy.virtual_servers.includes(name));
  const last = (key) => series(name, key).at(-1) ?? 0;
  return h("div", null,
    h("h1", null, `Virtual server ${name} `, mark(serverState(server, state.pools))),
    h("p", { class: "quiet" }, `${server.type}, listens on ${server.listen.join(", ") || "nothing: rules hand requests to it"}`),
    h("div", { class: "tiles" },
      tile("Requests", rate(last("requests")), "/s"),
      tile("Under way", count(server.requests_active)),
      tile("Client connections", count(server.connections_open), server.connections_max ? `of ${count(server.connections_max)}` : null),
      tile("P50", span(server.request_duration?.p50_ms)),
      tile("P99", span(server.request_duration?.p99_ms)),
      tile("Sent", bytes(last("sent")), "/s")),
    h("div", { class: "charts" },
      chart("Requests per second", series(name, "requests"), rate),
      chart("Failed responses per second", series(name, "failed"), rate, "bad"),
      chart("Mean response time", series(name, "ms", "answered"), span),
      chart("Client connections", levels(name, "open"), count)),
    h("h2", null, "Responses"), answers(server),
    server.waf && firewall(server.waf),
    policies.length > 0 && [h("h2", null, "Policies, in their order"), policies.map(rules)],
    server.pools.length > 0 && [h("h2", null, "Pools"), poolsOf(server)]);
}

function answers(server) {
  const rows = Object.entries(server.responses ?? {}).map(([status, number]) => ({ status, number }));
  return table("Responses since the start", [
    { name: "Status", cell: (row) => row.status },
    { name: "Responses", isNumber: true, cell: (row) => count(row.number) },
    { name: "Share", isNumber: true, cell: (row) => `${server.requests ? ((row.number / server.requests) * 100).toFixed(1) : "0"} %` },
  ], rows, (row) => row.status, "It makes no HTTP responses.");
}

function firewall(waf) {
  return [h("h2", null, "Web application firewall"), h("div", { class: "tiles" },
    tile("Mode", waf.mode), tile("Inspected", count(waf.inspected)), tile("Detected", count(waf.detected)),
    tile("Blocked", count(waf.blocked)), tile("Not judged", count(waf.unjudged)))];
}

function poolsOf(server) {
  const rows = server.pools.map((name) => state.pools.get(name)).filter(Boolean);
  return table("Pools that requests go to", [
    { name: "Pool", cell: (pool) => link("pools", pool.name) },
    { name: "State", cell: (pool) => mark(poolState(pool)) },
    { name: "Members", isWide: true, cell: dots },
    { name: "Waiting", isNumber: true, cell: (pool) => count(pool.queue_requests) },
    { name: "Retries", isNumber: true, cell: (pool) => count(pool.retries) },
  ], rows, (pool) => pool.name);
}
