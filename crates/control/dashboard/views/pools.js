// The list of pools, and the details of one: its members and their states, which can be changed.

import { call, part } from "../api.js";
import { confirm, prompt, tell, tellProblem } from "../dialogs.js";
import { h } from "../dom.js";
import { controls, dots, link, mark, reason, table, tile, wanted } from "../parts.js";
import { mayChange, mayOperate, state } from "../state.js";
import { count, memberState, span } from "../words.js";

export const title = "Pools";
export const needs = () => [];

/** What a change of state means, in the words of its question. */
const CHANGES = [
  { to: "enabled", name: "Enable", means: "It takes requests again." },
  { to: "drain", name: "Drain", means: "It gets no new clients. It finishes open requests, and keeps clients that persistence sends to it." },
  { to: "disabled", name: "Disable", means: "It finishes open requests only; its persistent clients go to other members." },
];

export function watches(name, memory) {
  return name === undefined ? wanted("pools", memory) : wanted("pool", memory, name);
}

export function draw(name, memory, redraw, again) {
  return name === undefined ? list(memory, again) : one(name, memory, again);
}

function list(memory, again) {
  const { pools } = state.document;
  if (!pools) return null;
  return h("div", null, h("h1", null, "Pools"), controls(pools, memory, again), table("Pools", [
    { name: "Name", cell: (pool) => link("pools", pool.name) },
    { name: "State", cell: (pool) => mark([pool.state, pool.shown]) },
    { name: "Members", isWide: true, cell: dots },
    { name: "Balancing", cell: (pool) => pool.balance },
    { name: "Waiting", isNumber: true, cell: (pool) => count(pool.queue_requests) },
    { name: "Retries", isNumber: true, cell: (pool) => count(pool.retries) },
    { name: "No member", isNumber: true, cell: (pool) => count(pool.no_member) },
  ], pools.order.map((name) => ({ name, ...pools.items[name] })), (pool) => pool.name, "No pool matches."));
}

function one(name, memory, again) {
  const view = state.document.pool;
  if (!view) return h("div", null, h("h1", null, name), h("p", null, "There is no pool of this name. ", h("a", { href: "#/pools" }, "All pools")));
  const pool = { ...view, name };
  const servers = pool.virtual_servers;
  const { list } = pool;
  const hasLatency = list.order.some((address) => list.items[address].response_duration);
  return h("div", null,
    h("h1", null, `Pool ${name} `, mark([pool.state, pool.shown])),
    reason(pool),
    h("p", { class: "quiet" }, `${pool.balance}; used by `, servers.length ? servers.map((server, index) => [index > 0 && ", ", link("servers", server)]) : "no virtual server"),
    h("div", { class: "tiles" },
      tile("In service", count(pool.members_in_service), `of ${count(pool.members)}`),
      tile("P99", span(pool.response_duration?.p99_ms)),
      tile("Waiting in the queue", count(pool.queue_requests)), tile("Retries", count(pool.retries)),
      tile("Requests without a member", count(pool.no_member))),
    list.total > 10 && controls(list, memory, again),
    !mayOperate() && h("p", { class: "quiet" }, "To change the state of members, log in with a token that has the role operate."),
    table("Members", [
      { name: "Member", cell: (member) => h("span", { class: "mono" }, member.name ? `${member.name} (${member.address})` : member.address) },
      { name: "State", cell: (member) => mark(memberState(member)) },
      { name: "Weight", isNumber: true, cell: (member) => weight(pool, member, again) },
      { name: "Requests", isNumber: true, cell: (member) => count(member.requests) },
      { name: "Under way", isNumber: true, cell: (member) => count(member.requests_active) },
      { name: "5xx", isNumber: true, cell: (member) => count(member.responses["5xx"]) },
      ...(hasLatency ? [{ name: "P99", isNumber: true, cell: (member) => span(member.response_duration?.p99_ms) }] : []),
      { name: "Monitors", isWide: true, cell: monitors },
      { name: "Change", cell: (member) => buttons(pool, member, again) },
    ], list.order.map((address) => list.items[address]), (member) => member.address, "The pool has no members."));
}

function monitors(member) {
  const lines = member.monitors.map((monitor) => h("div", null, `${monitor.type}: ${monitor.state}`, monitor.state !== "up" && monitor.last_failure ? `, ${monitor.last_failure}` : null));
  if (member.ejected_why) lines.unshift(h("div", null, `ejected: ${member.ejected_why}`));
  return lines.length > 0 ? lines : h("span", { class: "quiet" }, "none");
}

function buttons(pool, member, again) {
  const isAllowed = mayOperate();
  return CHANGES.filter(({ to }) => to !== member.administrative).map(({ to, name, means }) => h("button", {
    type: "button",
    disabled: !isAllowed,
    title: isAllowed ? means : "Log in with a token that has the role operate",
    "aria-label": `${name} ${member.address}`,
    onclick: () => change(pool, member, { to, name, means }, again),
  }, name));
}

function weight(pool, member, again) {
  if (!mayChange()) return count(member.weight);
  return h("button", { type: "button", "aria-label": `Weight of ${member.address}: ${member.weight}`, onclick: () => setWeight(pool, member, again) }, count(member.weight));
}

async function setWeight(pool, member, again) {
  const text = "A member gets requests in the ratio of its weight; with 0 it keeps its clients and gets no new ones. The change survives restarts.";
  const answer = await prompt(`Weight of ${member.address} in ${pool.name}`, text, "Weight", "Change", { type: "number", min: 0, max: 256, value: member.weight });
  if (answer === null) return;
  try {
    const path = `/pools/${pointer(pool.name)}/members/${pointer(member.address)}/weight`;
    const body = { comment: "weight, from the dashboard", changes: [{ op: "set", path, value: Number(answer) }] };
    const send = (last) => call("changes", { method: "POST", body: last ? { ...body, last } : body });
    const made = await unlessLast(send, (problem) => (
      confirm(`Weight of ${member.address} in ${pool.name}: ${answer}?`, `${sentence(problem.message)}.`, "Change the last one", true)));
    if (!made) return;
    tell(made.state === "unchanged" ? `${member.address} has weight ${answer} already.` : `Version ${made.version}: ${member.address} has weight ${answer}.`);
    again();
  } catch (problem) {
    tellProblem(problem);
  }
}

/** A name in a JSON pointer (RFC 6901). */
function pointer(name) {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Makes a change. If weir warns that it takes the last member, asks `isMeant`; `null`: it is not. */
async function unlessLast(send, isMeant) {
  try {
    return await send(false);
  } catch (problem) {
    if (problem.needs !== "last") throw problem;
    return await isMeant(problem) ? send(true) : null;
  }
}

/** Sets the state of a member, as `unlessLast` does. */
function setState(pool, member, body, isMeant) {
  const path = `pools/${part(pool.name)}/members/${part(member.address)}/state`;
  return unlessLast((last) => call(path, { method: "PUT", body: last ? { ...body, last } : body }), isMeant);
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

async function change(pool, member, { to, name, means }, again) {
  const question = `${name} ${member.address} in ${pool.name}?`;
  if (!await confirm(question, means, name)) return;
  try {
    const changed = await setState(pool, member, { state: to }, async (problem) => (
      // weir has looked at the members just now. What the page shows may be older.
      confirm(question, `${sentence(problem.message)}. ${means}`, `${name} the last one`, true)));
    if (!changed) return;
    tell(`${member.address} is ${changed.member.administrative} now; ${changed.members_in_service} members of ${pool.name} take requests.`);
    again();
  } catch (problem) {
    tellProblem(problem);
  }
}
