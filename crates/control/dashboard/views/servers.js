// The list of virtual servers, and the details of one.

import { chart, spark } from "../chart.js";
import { h } from "../dom.js";
import { controls, dots, link, mark, reason, table, tile, wanted } from "../parts.js";
import { last, series, state } from "../state.js";
import { bytesAndUnit, count, rate, span } from "../words.js";
import { rules } from "./policies.js";

export const title = "Virtual servers";
export const needs = () => [];

export function watches(name, memory) {
  return name === undefined ? wanted("servers", memory) : { view: "server", name };
}

export function draw(name, memory, redraw, again) {
  return name === undefined ? list(memory, again) : one(name);
}

function list(memory, again) {
  const { servers } = state.document;
  if (!servers) return null;
  const rows = servers.order.map((name) => ({ name, ...servers.items[name] }));
  return h("div", null, h("h1", null, "Virtual servers"), controls(servers, memory, again), table("Virtual servers", [
    { name: "Name", cell: (server) => link("servers", server.name) },
    { name: "State", cell: (server) => mark([server.state, server.shown]) },
    { name: "Type", cell: (server) => server.type },
    { name: "Listens on", cell: (server) => server.listen.join(", ") || "–" },
    { name: "Pool", cell: (server) => (server.pool ? link("pools", server.pool) : "–") },
    { name: "Requests/s", isNumber: true, cell: (server) => rate(server.requests_per_second) },
    { name: "Last minutes", cell: (server) => spark(state.rows.get(server.name) ?? []) },
    { name: "Connections", isNumber: true, cell: (server) => count(server.connections_open) },
    { name: "5xx", isNumber: true, cell: (server) => count(server.failed) },
    { name: "P50", isNumber: true, cell: (server) => span(server.p50_ms) },
    { name: "P99", isNumber: true, cell: (server) => span(server.p99_ms) },
  ], rows, (server) => server.name, "No virtual server matches."));
}

function one(name) {
  const view = state.document.server;
  if (!view) return h("div", null, h("h1", null, name), h("p", null, "There is no virtual server of this name. ", h("a", { href: "#/servers" }, "All virtual servers")));
  const { status, policies, pools } = view;
  const [sent, unit] = bytesAndUnit(last("sent") ?? 0);
  return h("div", null,
    h("h1", null, `Virtual server ${name} `, mark([view.state, view.shown])),
    reason(view),
    h("p", { class: "quiet" }, `${status.type}, listens on ${status.listen.join(", ") || "nothing: rules hand requests to it"}`),
    h("div", { class: "tiles" },
      tile("Requests", rate(last("requests") ?? 0), "/s"),
      tile("Under way", count(status.requests_active)),
      tile("Client connections", count(status.connections_open), status.connections_max ? `of ${count(status.connections_max)}` : null),
      tile("P50", span(status.request_duration?.p50_ms)),
      tile("P99", span(status.request_duration?.p99_ms)),
      tile("Sent", sent, `${unit}/s`)),
    h("div", { class: "charts" },
      chart("Requests per second", series("requests"), rate),
      chart("Failed responses per second", series("failed"), rate, "bad"),
      chart("Mean response time", series("ms"), span),
      chart("Client connections", series("open"), count)),
    h("h2", null, "Responses"), answers(status),
    status.waf && firewall(status.waf),
    policies.length > 0 && [h("h2", null, "Policies, in their order"), policies.map(rules)],
    pools.length > 0 && [h("h2", null, "Pools"), poolsOf(pools)]);
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

function poolsOf(pools) {
  return table("Pools that requests go to", [
    { name: "Pool", cell: (pool) => link("pools", pool.name) },
    { name: "State", cell: (pool) => mark([pool.state, pool.shown]) },
    { name: "Members", isWide: true, cell: dots },
    { name: "Waiting", isNumber: true, cell: (pool) => count(pool.queue_requests) },
    { name: "Retries", isNumber: true, cell: (pool) => count(pool.retries) },
  ], pools, (pool) => pool.name);
}
