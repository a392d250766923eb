// The first view: problems and traffic.

import { chart } from "../chart.js";
import { h } from "../dom.js";
import { link, mark, table, tile } from "../parts.js";
import { last, series, state } from "../state.js";
import { bytesAndUnit, count, duration, rate, span } from "../words.js";

export const title = "Overview";
export const needs = () => [];
export const watches = () => ({ view: "overview" });

export function draw() {
  const { process, overview } = state.document;
  if (!overview) return null;
  const [sent, unit] = bytesAndUnit(last("sent") ?? 0);
  return h("div", null,
    h("h1", null, "Overview"),
    problems(process, overview),
    h("div", { class: "tiles" },
      tile("Requests", rate(last("requests") ?? 0), "/s"),
      tile("Failed responses (5xx)", rate(last("failed") ?? 0), "/s"),
      tile("Mean response time", span(last("ms"))),
      tile("Client connections", count(last("open") ?? 0)),
      tile("Sent", sent, `${unit}/s`),
      tile("TLS handshakes", rate(last("handshakes") ?? 0), "/s"),
      tile("Blocked by the firewall", rate(last("blocked") ?? 0), "/s"),
      tile("Members up", count(overview.members_up), `of ${count(overview.members)}`),
      tile("Running for", duration((Date.now() - new Date(process.started)) / 1000))),
    h("div", { class: "charts" },
      chart("Requests per second", series("requests"), rate),
      chart("Failed responses per second", series("failed"), rate, "bad"),
      chart("Mean response time", series("ms"), span)),
    h("h2", null, "Needs attention"),
    overview.ailing_count > 0 && [
      table("Virtual servers that are not up", [
        { name: "Virtual server", cell: (server) => link("servers", server.name) },
        { name: "State", cell: (server) => mark([server.state, server.shown]) },
        { name: "Reason", isWide: true, cell: (server) => server.why },
      ], overview.ailing, (server) => server.name),
      more(overview.ailing_count - overview.ailing.length),
    ],
    table("Pools that are not up", [
      { name: "Pool", cell: (pool) => link("pools", pool.name) },
      { name: "State", cell: (pool) => mark([pool.state, pool.shown]) },
      { name: "Reason", isWide: true, cell: (pool) => pool.why },
      { name: "Members", isWide: true, cell: (pool) => [pool.members.map((text) => h("div", null, text)), pool.more > 0 && h("div", { class: "quiet" }, `and ${pool.more} more`)] },
    ], overview.attention, (pool) => pool.name, overview.pools > 0 ? "All pools are up." : "There are no pools."),
    more(overview.attention_count - overview.attention.length),
    h("h2", null, "Busiest virtual servers"),
    table("Virtual servers by requests per second", [
      { name: "Virtual server", cell: (server) => link("servers", server.name) },
      { name: "State", cell: (server) => mark([server.state, server.shown]) },
      { name: "Requests/s", isNumber: true, cell: (server) => rate(server.requests_per_second) },
      { name: "Connections", isNumber: true, cell: (server) => count(server.connections_open) },
      { name: "P50", isNumber: true, cell: (server) => span(server.p50_ms) },
      { name: "P99", isNumber: true, cell: (server) => span(server.p99_ms) },
    ], overview.busiest, (server) => server.name));
}

function more(count) {
  return count > 0 && h("p", { class: "quiet" }, `and ${count} more`);
}

function problems(process, overview) {
  const lines = process.problems.map((text) => h("li", null, text));
  const more = process.problems_count - process.problems.length;
  if (more > 0) lines.push(h("li", null, `and ${more} more`));
  lines.push(...overview.expiring.map((certificate) => h("li", { class: "warn" },
    `The certificate for ${certificate.names.join(", ") || "no name"} ends in ${certificate.days_left} days. `,
    h("a", { href: "#/certificates" }, "Certificates"))));
  return lines.length > 0 && h("ul", { class: "problems" }, lines);
}
