// The first view: problems and traffic.

import { chart } from "../chart.js";
import { h } from "../dom.js";
import { link, mark, table, tile } from "../parts.js";
import { levels, series, state } from "../state.js";
import { bytes, count, duration, memberState, poolState, rate, serverState, span } from "../words.js";

const DAYS_LEFT_MIN = 30;
const ROWS = 12;

export const title = "Overview";
export const needs = ["certificates"];

export function draw() {
  const { process, servers, pools } = state;
  const members = [...pools.values()].flatMap((pool) => pool.members);
  const up = members.filter((member) => memberState(member)[0] === "up").length;
  const last = (key, per) => series("", key, per).at(-1) ?? 0;
  return h("div", null,
    h("h1", null, "Overview"),
    problems(process),
    h("div", { class: "tiles" },
      tile("Requests", rate(last("requests")), "/s"),
      tile("Failed responses (5xx)", rate(last("failed")), "/s"),
      tile("Mean response time", span(series("", "ms", "answered").at(-1))),
      tile("Client connections", count(levels("", "open").at(-1) ?? 0)),
      tile("Sent", bytes(last("sent")), "/s"),
      tile("Blocked by the firewall", rate(last("blocked")), "/s"),
      tile("Members up", count(up), `of ${count(members.length)}`),
      tile("Running for", duration(process.uptime_seconds))),
    h("div", { class: "charts" },
      chart("Requests per second", series("", "requests"), rate),
      chart("Failed responses per second", series("", "failed"), rate, "bad"),
      chart("Mean response time", series("", "ms", "answered"), span)),
    attention(),
    busiest(servers, pools));
}

function problems(process) {
  const lines = process.problems.map((text) => h("li", null, text));
  const expiring = state.certificates.filter((certificate) => certificate.days_left < DAYS_LEFT_MIN);
  lines.push(...expiring.slice(0, 10).map((certificate) => h("li", { class: "warn" },
    `The certificate for ${certificate.names.join(", ") || certificate.subject} ends in ${certificate.days_left} days. `,
    h("a", { href: "#/certificates" }, "Certificates"))));
  return lines.length > 0 && h("ul", { class: "problems" }, lines);
}

function attention() {
  const rows = [...state.pools.values()]
    .filter((pool) => pool.members.length > 0 && poolState(pool)[1] !== "good")
    .sort((one, other) => one.members_in_service - other.members_in_service)
    .slice(0, ROWS);
  const down = (pool) => pool.members.filter((member) => memberState(member)[1] !== "good");
  const why = (member) => member.ejected_why ?? member.monitors.find((it) => it.state === "down")?.last_failure ?? memberState(member)[0];
  return [h("h2", null, "Needs attention"), table("Pools with members that take no traffic", [
    { name: "Pool", cell: (pool) => link("pools", pool.name) },
    { name: "State", cell: (pool) => mark(poolState(pool)) },
    { name: "Members", isWide: true, cell: (pool) => down(pool).slice(0, 4).map((member) => h("div", null, `${member.address}: ${why(member)}`)) },
  ], rows, (pool) => pool.name, "All members of all pools take traffic.")];
}

function busiest(servers, pools) {
  const rows = [...servers]
    .sort((one, other) => other.rates.requests_per_second - one.rates.requests_per_second)
    .slice(0, ROWS);
  return [h("h2", null, "Busiest virtual servers"), table("Virtual servers by requests per second", [
    { name: "Virtual server", cell: (server) => link("servers", server.name) },
    { name: "State", cell: (server) => mark(serverState(server, pools)) },
    { name: "Requests/s", isNumber: true, cell: (server) => rate(server.rates.requests_per_second) },
    { name: "Connections", isNumber: true, cell: (server) => count(server.connections_open) },
    { name: "P99", isNumber: true, cell: (server) => span(server.request_duration?.p99_ms) },
  ], rows, (server) => server.name)];
}
