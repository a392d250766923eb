// Findings of the web application firewall: by rule and place and by check, with a way to exclude them, and the last requests.

import { call } from "../api.js";
import { confirm, tell, tellProblem } from "../dialogs.js";
import { h } from "../dom.js";
import { browse, link, mark, table } from "../parts.js";
import { mayChange, mayOperate, state } from "../state.js";
import { count, time } from "../words.js";

export const title = "Firewall";
export const needs = () => (mayOperate() ? ["events", "findings"] : []);

const OUTCOMES = { blocked: ["blocked", "bad"], detected: ["would be blocked", "warn"], unjudged: ["not judged", "warn"], passed: ["passed", "good"] };

export function draw(_, memory, redraw, again) {
  return h("div", null, h("h1", null, "Firewall"), mayOperate() && state.findings ? [
    h("h2", null, "Rules"), findings(memory, redraw, again),
    h("h2", null, "Checks"), checks(memory, redraw, again),
    h("h2", null, "Last requests with findings"), events(memory, redraw),
  ] : h("p", null, "Log in with a token that has the role operate: findings show parts of requests."));
}

function findings(memory, redraw, again) {
  const { items, left_out: leftOut, unnamed } = state.findings;
  memory.findings ??= {};
  const textOf = (it) => `${it.rule} ${it.message} ${it.variable} ${it.path} ${it.virtual_server}`;
  const { controls, shown } = browse(items, textOf, memory.findings, redraw);
  return [
    h("p", { class: "quiet" }, "An exclusion takes one value away from one rule, for requests of one path. Exclude only what legitimate users send: an attack in this place then passes that rule."),
    items.length > 10 && controls,
    table("Findings in the last requests", [
      { name: "Rule", isWide: true, cell: (it) => [h("div", { class: "mono" }, it.rule), h("div", null, it.message)] },
      { name: "Found in", isWide: true, cell: (it) => [h("div", { class: "mono" }, it.variable), h("div", { class: "quiet" }, `${it.path} of `, link("servers", it.virtual_server))] },
      { name: "Value", isWide: true, cell: (it) => h("span", { class: "mono" }, it.example ?? "masked") },
      { name: "Requests", isNumber: true, cell: (it) => count(it.requests) },
      { name: "Clients", isNumber: true, cell: (it) => count(it.clients) },
      { name: "Points", isNumber: true, cell: (it) => it.score },
      { name: "Advice", cell: (it) => mark(advice(it)) },
      { name: "Change", cell: (it) => excludeButton(it, again) },
    ], shown, (it) => it.id, "No rule has found anything since the start."),
    leftOut > 0 && h("p", { class: "quiet" }, `${count(leftOut)} further findings are not listed.`),
    unnamed > 0 && h("p", { class: "quiet" }, `${count(unnamed)} findings are in nothing that an exclusion can name.`)];
}

function advice(it) {
  if (it.is_excluded) return ["excluded", "off"];
  if (it.suspicious * 2 > it.requests) return ["looks like an attack", "bad"];
  return it.is_proposed ? ["probably legitimate", "good"] : ["too few to tell", "warn"];
}

function excludeButton(it, again) {
  if (it.is_excluded) return "–";
  return h("button", {
    type: "button", disabled: !mayChange(), "aria-label": `Exclude this: ${it.variable} of ${it.path} from rule ${it.rule}`,
    title: mayChange() ? null : "Log in with a token that has the role admin", onclick: () => exclude(it, again),
  }, "Exclude this");
}

function checks(memory, redraw, again) {
  memory.checks ??= {};
  const textOf = (it) => `${it.check} ${it.message} ${it.place} ${it.virtual_server} ${it.action}`;
  const { controls, shown } = browse(state.findings.checks, textOf, memory.checks, redraw);
  return [
    h("p", { class: "quiet" }, "Checks need no rules, and apply to all requests of a virtual server. If a check blocks what legitimate users send, let it only log, or switch it off."),
    state.findings.checks.length > 10 && controls,
    table("Checks with findings in the last requests", [
      { name: "Check", isWide: true, cell: (it) => [h("div", { class: "mono" }, it.check), h("div", { class: "quiet" }, it.message)] },
      { name: "Found in", isWide: true, cell: (it) => [it.place && h("div", { class: "mono" }, it.place), link("servers", it.virtual_server)] },
      { name: "Value", isWide: true, cell: (it) => h("span", { class: "mono" }, it.example ?? "–") },
      { name: "Requests", isNumber: true, cell: (it) => count(it.requests) },
      { name: "Clients", isNumber: true, cell: (it) => count(it.clients) },
      { name: "Action", cell: (it) => mark(ACTIONS[it.action]) },
      { name: "Advice", cell: (it) => mark(advice({ ...it, is_excluded: it.action === "off" })) },
      { name: "Change", cell: (it) => weakenButton(it, again) },
    ], shown, (it) => it.id, "No check has found anything since the start.")];
}

const ACTIONS = { block: ["blocks", "bad"], alarm: ["logs", "warn"], off: ["off", "off"] };

function weakenButton(it, again) {
  if (!it.change) return "–";
  const text = it.change.value === "alarm" ? "Only log it" : "Switch it off";
  return h("button", {
    type: "button", disabled: !mayChange(), "aria-label": `${text}: the check ${it.check} of ${it.virtual_server}`,
    title: mayChange() ? null : "Log in with a token that has the role admin", onclick: () => weaken(it, text, again),
  }, text);
}

async function weaken(it, text, again) {
  const [word, kind] = advice(it);
  const does = it.change.value === "alarm" ? "logs and counts its findings, and blocks no request any more" : "does not run any more";
  const content = [
    h("p", null, `The check ${it.check} ${does}. ${reach(it)}`),
    h("pre", { class: "card mono" }, `${it.change.path}: ${it.change.value}`),
    h("p", null, mark([word, kind]), ` ${told(it)}`),
    h("p", { class: "quiet" }, TAKEN_BACK),
  ];
  if (!await confirm(`${text}?`, content, text, kind === "bad")) return;
  await change(it.change, `check ${it.check}: ${it.change.value}, from the dashboard`, `the check ${it.check} is ${it.change.value === "off" ? "off" : "an alarm"}.`, again);
}

const TAKEN_BACK = "It becomes a version of the configuration. To take it back, return to the version before.";

/** The virtual servers that a change applies to. */
function reach(it) {
  return `${it.applies_to.length > 1 ? "They share a profile, so it" : "It"} applies to ${it.applies_to.join(", ")}.`;
}

/** How often it was found. */
function told(it) {
  return `${it.requests} of the last requests had it, from ${it.clients} ${it.clients === 1 ? "client" : "clients"}.`;
}

/** Makes a change, unless the configuration has changed since the findings were read. */
async function change(wanted, comment, done, again) {
  try {
    const ifMatch = `"version-${state.findings.version}"`;
    const { version } = await call("changes", { method: "POST", body: { comment, changes: [wanted] }, ifMatch });
    tell(`Version ${version}: ${done}`);
  } catch (problem) {
    tellProblem(problem);
  }
  again();
}

async function exclude(it, again) {
  const [word, kind] = advice(it);
  const { value } = it.change;
  const content = [
    h("p", null, `Rule ${it.rule} (${it.message}) does not inspect ${it.variable} in requests for ${it.path} any more. ${reach(it)}`),
    h("pre", { class: "card mono" }, `${it.change.path}\nrule: ${value.rule}\nvariable: "${value.variable}"\npath: ${value.path}`),
    h("p", null, mark([word, kind]), ` ${told(it)}`),
    h("p", { class: "quiet" }, TAKEN_BACK),
  ];
  if (!await confirm("Exclude this finding?", content, "Exclude", kind === "bad")) return;
  await change(it.change, `exclusion from rule ${it.rule}, from the dashboard`, `${it.variable} of ${it.path} is excluded from rule ${it.rule}.`, again);
}

function events(memory, redraw) {
  memory.events ??= {};
  const textOf = (it) => `${it.request_id} ${it.client} ${it.virtual_server} ${it.host}${it.target} ${it.outcome} ${it.rules.map((rule) => `${rule.id} ${rule.message}`).join(" ")}`;
  const { controls, shown } = browse(state.events, textOf, memory.events, redraw);
  return [state.events.length > 10 && controls,
    shown.length === 0 ? h("p", { class: "quiet" }, "None.") : h("div", { class: "events" }, shown.map(event))];
}

function event(it) {
  return h("details", { class: "card", "data-key": String(it.number) },
    h("summary", null, h("span", { class: "mono" }, `${it.method} ${it.target}`), " ", mark(OUTCOMES[it.outcome] ?? [it.outcome, "off"]),
      h("span", { class: "quiet" }, ` ${time(it.time)}, ${it.client}, ${it.virtual_server}`)),
    h("p", null, why(it)),
    h("p", { class: "quiet" }, `Host ${it.host || "missing"}, request `, h("span", { class: "mono" }, it.request_id)),
    it.rules.length > 0 && table("Rules", [
      { name: "Rule", cell: (rule) => rule.id },
      { name: "What it says", isWide: true, cell: (rule) => [rule.message, rule.data && h("div", { class: "quiet mono" }, rule.data)] },
      { name: "Severity", cell: (rule) => rule.severity || "–" },
      { name: "Where", isWide: true, cell: (rule) => rule.values.map((found) => h("div", { class: "mono" }, `${found.variable} = ${found.value}`)) },
    ], it.rules, (rule) => String(rule.id)),
    it.checks.length > 0 && table("Checks", [
      { name: "Check", cell: (check) => check.name },
      { name: "Action", cell: (check) => check.action },
      { name: "Where", isWide: true, cell: (check) => h("span", { class: "mono" }, check.place) },
      { name: "What was found", isWide: true, cell: (check) => h("span", { class: "mono" }, check.data) },
    ], it.checks, (check) => check.name));
}

/** Why the request got what it got, in a sentence. */
function why(it) {
  const verb = it.outcome === "detected" ? "would block" : "blocked";
  if (it.outcome === "unjudged") return `It could not be judged: the limit ${it.limit ?? "of its body"} was reached.`;
  if (it.outcome === "passed") return `It passed: its findings have ${it.score} ${it.threshold ? `of ${it.threshold} ` : ""}points.`;
  if (it.check) return `The check ${it.check} ${verb} it.`;
  const score = it.threshold && it.score >= it.threshold ? `: its findings have ${it.score} points, and ${it.threshold} suffice` : "";
  return it.rule ? `Rule ${it.rule} ${verb} it${score}.` : `The firewall ${verb} it${score}.`;
}
