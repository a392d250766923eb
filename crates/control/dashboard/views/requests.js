// Recent requests: the slow ones, those that failed, those that the firewall found something in; and one of them.

import { h } from "../dom.js";
import { browse, link, mark, share, table, tile } from "../parts.js";
import { mayOperate, state } from "../state.js";
import { bytesAndUnit, count, span, time } from "../words.js";

export const title = "Requests";

const KINDS = [["slow", "Slow"], ["failed", "Failed (5xx)"], ["firewall", "Found by the firewall"], ["all", "All"]];
const QUERIES = { slow: "slow=true", failed: "status=5xx", firewall: "waf=found", all: "" };

export function needs(_, name, memory) {
  if (!mayOperate()) return [];
  return [name === undefined ? `requests?limit=200&${QUERIES[memory.kind ?? "slow"]}` : `requests/${name}`];
}

export function draw(name, memory, redraw, again) {
  if (!mayOperate()) return h("div", null, h("h1", null, "Requests"), h("p", null, "Log in with a token that has the role operate: requests show what clients asked for."));
  return name === undefined ? list(memory, redraw, again) : one(name);
}

function list(memory, redraw, again) {
  const kind = memory.kind ?? "slow";
  const choose = (to) => () => {
    Object.assign(memory, { kind: to, page: 0 });
    again();
  };
  const { items, missing } = state.requests;
  const textOf = (it) => `${it.id} ${it.method} ${it.host}${it.target} ${it.client} ${it.virtual_server} ${it.pool} ${it.member} ${it.status} ${it.termination}`;
  const { controls, shown } = browse(items, textOf, memory, redraw);
  return h("div", null, h("h1", null, "Requests"),
    h("div", { class: "bar", role: "group", "aria-label": "Which requests" }, KINDS.map(([word, text]) => (
      h("button", { type: "button", "aria-pressed": word === kind ? "true" : "false", onclick: choose(word) }, text)))),
    missing ? h("p", { class: "quiet" }, missing) : [items.length > 10 && controls, table("Requests, the newest on top", [
      { name: "Request", isWide: true, cell: (it) => [link("requests", it.id, `${it.method ?? "–"} ${it.target ?? ""}`), h("div", { class: "quiet" }, it.host)] },
      { name: "Time", cell: (it) => time(it.begun_unix_ms) },
      { name: "Status", isNumber: true, cell: (it) => it.status || "none" },
      { name: "Took", isNumber: true, cell: (it) => span(it.total_us / 1000) },
      { name: "Most of it", cell: slowest },
      { name: "Virtual server", cell: (it) => link("servers", it.virtual_server) },
      { name: "Member", cell: (it) => it.member ?? "–" },
      { name: "End", cell: (it) => it.termination },
    ], shown, (it) => it.id, "None.")]);
}

/** The times of a request, one after the other. */
function times(it) {
  const { queue_us: queue, connect_us: connect, first_byte_us: first, total_us: total } = it;
  return [["waiting for a member", queue], ["connecting", connect], ["waiting for the response", first], ["sending the response", Math.max(0, total - queue - connect - first)]];
}

function slowest(it) {
  const [name, us] = times(it).reduce((one, other) => (other[1] > one[1] ? other : one));
  return us > 0 ? name : "–";
}

function one(name) {
  const it = state.request;
  if (!it || it.id !== name) return h("div", null, h("h1", null, "Request"), h("p", null, `${state.request?.missing ?? "Loading…"} `, h("a", { href: "#/requests" }, "All requests")));
  return h("div", null, h("h1", null, "Request ", h("span", { class: "mono" }, it.id)),
    h("h2", { class: "target" }, `${it.method ?? "–"} ${it.target ?? ""}`),
    h("p", { class: "quiet" }, `${time(it.begun_unix_ms)}, host ${it.host ?? "none"}, client ${it.client ?? "over a unix socket"}, HTTP/${it.version ?? "?"}${it.tls ? `, TLS ${it.tls}` : ""}`),
    h("div", { class: "tiles" }, tile("Status", it.status || "none"), tile("Took", span(it.total_us / 1000)), tile("End", it.termination),
      tile("Retries", count(it.retries)), tile("Received", ...bytesAndUnit(it.bytes_received)), tile("Sent", ...bytesAndUnit(it.bytes_sent))),
    h("p", null, link("explain", it.id, "Explain"), h("span", { class: "quiet" }, " why it went where it went: rule by rule, with the values that they compare")),
    h("h2", null, "Where its time went"), timeline(it),
    it.decided.length > 0 && [h("h2", null, "Decisions"), table("Virtual servers, in their order", [
      { name: "Virtual server", cell: (at) => link("servers", at.virtual_server) },
      { name: "Rules that were followed", isWide: true, cell: (at) => at.rules?.join(", ") || "none" },
      { name: "Verdict", isWide: true, cell: (at) => at.verdict },
    ], it.decided, (at) => at.virtual_server)],
    it.sought.map((at, index) => table(`Members of ${at.pool} when it looked for one`, [
      { name: "Member", cell: (member) => [h("span", { class: "mono" }, member.member), member.member === it.member && index === it.sought.length - 1 ? " (chosen)" : ""] },
      { name: "State", cell: (member) => mark([member.administrative === "enabled" ? member.state : member.administrative, member.is_eligible ? "good" : "off"]) },
      { name: "Requests", isNumber: true, cell: (member) => count(member.occupancy) },
    ], at.candidates, (member) => member.member)),
    it.failed.length > 0 && table("Members that did not serve it", [
      { name: "Member", cell: (at) => h("span", { class: "mono" }, at.member) },
      { name: "Why", isWide: true, cell: (at) => at.why },
      { name: "For", isNumber: true, cell: (at) => span(at.took_us / 1000) },
    ], it.failed, (at) => at.member),
    it.firewall?.rules.length > 0 && table(`Firewall: ${it.firewall.outcome}, score ${it.firewall.score}`, [
      { name: "Rule", cell: (rule) => rule.id }, { name: "What it says", isWide: true, cell: (rule) => rule.message },
    ], it.firewall.rules, (rule) => String(rule.id)),
    h("h2", null, "Fields"), h("pre", { class: "card mono" }, it.headers.map((field) => `${field.name}: ${field.value}`).join("\n") || "none"));
}

function timeline(it) {
  const total = Math.max(it.total_us, 1);
  return h("div", { class: "card" }, times(it).map(([name, us]) => h("div", { class: "rule" }, h("span", null, name),
    share(us, total, `${name}: ${span(us / 1000)}`), h("span", { class: "right" }, span(us / 1000)))));
}
