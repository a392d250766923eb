// A form for a request, and its explanation step by step.

import { call } from "../api.js";
import { tellProblem } from "../dialogs.js";
import { h } from "../dom.js";
import { link, mark, table, tile } from "../parts.js";
import { mayChange, state } from "../state.js";
import { memberState } from "../words.js";

export const title = "Explain";
export const needs = (_, name) => (name === undefined || !mayChange() ? [] : [`requests/${name}/explanation`]);

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const VERDICTS = {
  followed: ["followed", "good"], false: ["does not hold", "off"], not_reached: ["not reached", "off"],
  with_response: ["acts on the response", "good"], awaits_response: ["needs the response", "warn"],
};

export function draw(name, memory, redraw) {
  if (name !== undefined) return recorded(name);
  memory.asked ??= { url: "", method: "GET", from: "", headers: "" };
  return h("div", null, h("h1", null, "Explain a request"),
    h("p", { class: "quiet" }, "weir decides about the request as it would now, with the state of this moment. Nothing is sent, and nothing changes."),
    mayChange() ? form(memory, redraw) : h("p", null, "Log in with a token that has the role admin: an explanation shows the conditions of rules."),
    memory.answer && answer(memory.answer));
}

/** A request of the past: what differs, and how it is decided now. */
function recorded(id) {
  const it = state.explanation;
  const heading = h("h1", null, "Explain request ", h("span", { class: "mono" }, id));
  if (!mayChange()) return h("div", null, heading, h("p", null, "Log in with a token that has the role admin: an explanation shows the conditions of rules."));
  if (it?.recorded?.id !== id) return h("div", null, heading, h("p", null, it?.missing ?? "Loading…"));
  return h("div", null, heading,
    h("p", null, link("requests", id, `${it.recorded.method ?? "–"} ${it.recorded.target ?? ""}`), ` went to ${it.recorded.member ?? "no member"}, status ${it.recorded.status || "none"}.`),
    it.differences.length > 0 && [h("h2", null, "Where it differs from now"), h("ul", null, it.differences.map((text) => h("li", null, text)))],
    it.again ? answer(it.again) : h("p", null, "It cannot be decided again."));
}

function form(memory, redraw) {
  const { asked } = memory;
  const take = (name) => (event) => {
    asked[name] = event.target.value;
  };
  return h("form", { class: "card form", onsubmit: (event) => {
    event.preventDefault();
    ask(memory, redraw);
  } },
  h("label", null, "URL", h("input", { type: "text", name: "url", required: true, placeholder: "https://shop.example/cart?id=1", value: asked.url, oninput: take("url") })),
  h("label", null, "Method", h("select", { onchange: take("method") }, METHODS.map((name) => h("option", { selected: name === asked.method }, name)))),
  h("label", null, "From the address", h("input", { type: "text", placeholder: "this host", value: asked.from, oninput: take("from") })),
  h("label", null, "Fields, one per line", h("textarea", { rows: 3, placeholder: "Cookie: session=1", oninput: take("headers") }, asked.headers)),
  h("div", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Explain")));
}

async function ask(memory, redraw) {
  const { url, method, from, headers } = memory.asked;
  const body = { url, method, headers: headers.split("\n").map((line) => line.trim()).filter(Boolean) };
  if (from.trim()) body.from = from.trim();
  try {
    memory.answer = await call("explain", { method: "POST", body });
  } catch (problem) {
    tellProblem(problem);
  }
  redraw();
}

function answer(it) {
  return h("div", { "data-key": "answer" },
    h("h2", null, "What comes of it"), outcome(it.outcome),
    it.remarks.length > 0 && h("ul", null, it.remarks.map((remark) => h("li", null, remark))),
    h("h2", null, "Where it comes in"),
    h("p", null, `Virtual server ${it.listener.virtual_server}${it.listener.address ? ` on ${it.listener.address}` : ""}: ${it.listener.because}.`),
    it.listener.tls && h("p", null, `TLS for ${it.listener.tls.server_name || "no name"}: ${it.listener.tls.certificate ? it.listener.tls.certificate.subject : "no certificate"}.`),
    it.virtual_servers.map(considered),
    it.firewall && firewall(it.firewall),
    it.balancing && balancing(it.balancing));
}

function outcome(it) {
  switch (it.kind) {
    case "member": return h("div", null, h("div", { class: "tiles" }, tile("Pool", it.pool), tile("Member", it.member ?? "one of several")),
      h("pre", { class: "card mono" }, [it.request_line, ...it.headers.map((field) => `${field.name}: ${field.value}`)].join("\n")));
    case "answer": return h("div", null, h("div", { class: "tiles" }, tile("weir answers with", it.status), tile("Termination", it.termination)),
      h("pre", { class: "card mono" }, [...it.headers.map((field) => `${field.name}: ${field.value}`), "", it.body ?? ""].join("\n")));
    case "queue": return h("p", null, `It waits in the queue of pool ${it.pool}, behind ${it.waiting} of at most ${it.length_max}.`);
    default: return h("p", null, `The connection is ${it.is_reset ? "reset" : "closed"} (${it.termination}).`);
  }
}

function considered(it) {
  return h("section", { class: "card" },
    h("p", { class: "caption" }, h("strong", null, `Virtual server ${it.virtual_server}`), h("span", null, it.verdict)),
    it.client && h("p", null, `Client ${it.client}, from ${it.client_from}.`),
    it.limits.map((limit) => h("p", null, `Limit ${limit.name}${limit.key ? ` of ${limit.key}` : ""}: room for ${limit.room} of ${limit.max}${limit.is_rate ? " per second" : ""} `, limit.is_exceeded && mark(["exceeded", "bad"]))),
    it.policies.map((policy) => table(`Policy ${policy.name}, ${policy.strategy}`, [
      { name: "Rule", cell: (rule) => rule.name },
      { name: "Verdict", cell: (rule) => mark(VERDICTS[rule.verdict] ?? [rule.verdict, "off"]) },
      { name: "Condition", isWide: true, cell: (rule) => [h("div", { class: "mono" }, rule.when ?? "always"), h("div", { class: "quiet" }, rule.place)] },
      { name: "Values", isWide: true, cell: (rule) => rule.values.map((value) => h("div", { class: "mono" }, `${value.name} = ${value.value ?? "nothing"}`)) },
      { name: "Actions", isWide: true, cell: (rule) => rule.actions.map((action) => h("div", null, action)) },
    ], policy.rules, (rule) => rule.name)),
    it.rewrites.map((change) => h("p", { class: "mono" }, `${change.part}: ${change.before} → ${change.after}`)),
    it.authentication.map((text) => h("p", null, text)),
    it.persistence && h("p", null, `Persistence ${it.persistence.name} (${it.persistence.kind}): ${it.persistence.verdict}${it.persistence.member ? `, member ${it.persistence.member}` : ""}.`),
    it.pool && h("p", null, `Pool ${it.pool.name}: ${it.pool.because}.`));
}

function firewall(it) {
  return [h("h2", null, "Web application firewall"),
    h("div", { class: "tiles" }, tile("Mode", it.mode), tile("Outcome", it.outcome), tile("Score", it.score, `of ${it.threshold}`)),
    table("Rules that matched", [
      { name: "Rule", cell: (rule) => rule.id },
      { name: "What it says", isWide: true, cell: (rule) => rule.message },
      { name: "Where", isWide: true, cell: (rule) => rule.values.map((value) => h("div", { class: "mono" }, `${value.name} = ${value.value ?? ""}`)) },
    ], it.rules, (rule) => String(rule.id), "No rule matched.")];
}

function balancing(it) {
  return [h("h2", null, "Which member"), h("p", null, `${it.method} in pool ${it.pool}: ${it.member ?? "one of those marked"}: ${it.because}.`),
    it.health && h("p", null, mark([it.health.state, it.health.state === "degraded" ? "warn" : "bad"]), ` pool ${it.pool}: ${it.health.why}`),
    table("Candidates", [
      { name: "Member", cell: (member) => h("span", { class: "mono" }, member.name ? `${member.name} (${member.member})` : member.member) },
      { name: "State", cell: (member) => mark(memberState(member)) },
      { name: "Choice", cell: (member) => mark(member.member === it.member ? ["chosen", "good"] : member.is_possible ? ["possible", "good"] : member.is_eligible ? ["not now", "off"] : ["cannot serve", "bad"]) },
      { name: "Weight", isNumber: true, cell: (member) => member.weight },
      { name: "Under way", isNumber: true, cell: (member) => member.occupancy },
    ], it.candidates, (member) => member.member)];
}
