// The list of pools, and the details of one: its members and their states, which can be changed.

import { call, part } from "../api.js";
import { confirm, prompt, tell, tellProblem } from "../dialogs.js";
import { h } from "../dom.js";
import { browse, dots, link, mark, table, tile } from "../parts.js";
import { mayChange, mayOperate, state } from "../state.js";
import { count, memberState, poolState, span } from "../words.js";

export const title = "Pools";
export const needs = [];

/** What a change of state means, in the words of its question. */
const CHANGES = [
  { to: "enabled", name: "Enable", means: "It takes requests again." },
  { to: "drain", name: "Drain", means: "It gets no new clients. It finishes open requests, and keeps clients that persistence sends to it." },
  { to: "disabled", name: "Disable", means: "It finishes open requests only; its persistent clients go to other members." },
];

export function draw(name, memory, redraw) {
  return name === undefined ? list(memory, redraw) : one(name, memory, redraw);
}

function list(memory, redraw) {
  const textOf = (pool) => `${pool.name} ${poolState(pool)[0]} ${pool.members.map((member) => member.address).join(" ")}`;
  const { controls, shown } = browse([...state.pools.values()], textOf, memory, redraw);
  return h("div", null, h("h1", null, "Pools"), controls, table("Pools", [
    { name: "Name", cell: (pool) => link("pools", pool.name) },
    { name: "State", cell: (pool) => mark(poolState(pool)) },
    { name: "Members", isWide: true, cell: dots },
    { name: "Balancing", cell: (pool) => pool.balance },
    { name: "Waiting", isNumber: true, cell: (pool) => count(pool.queue_requests) },
    { name: "Retries", isNumber: true, cell: (pool) => count(pool.retries) },
    { name: "No member", isNumber: true, cell: (pool) => count(pool.no_member) },
  ], shown, (pool) => pool.name, "No pool matches."));
}

function one(name, memory, redraw) {
  const pool = state.pools.get(name);
  if (!pool) return h("div", null, h("h1", null, name), h("p", null, "There is no pool of this name. ", h("a", { href: "#/pools" }, "All pools")));
  const textOf = (member) => `${member.address} ${member.name ?? ""} ${memberState(member)[0]} ${member.administrative}`;
  const { controls, shown } = browse(pool.members, textOf, memory, redraw);
  const servers = state.servers.filter((server) => server.pools.includes(name));
  return h("div", null,
    h("h1", null, `Pool ${name} `, mark(poolState(pool))),
    h("p", { class: "quiet" }, `${pool.balance}; used by `, servers.length ? servers.slice(0, 20).map((server, index) => [index > 0 && ", ", link("servers", server.name)]) : "no virtual server"),
    h("div", { class: "tiles" },
      tile("In service", count(pool.members_in_service), `of ${count(pool.members.length)}`),
      tile("Waiting in the queue", count(pool.queue_requests)), tile("Retries", count(pool.retries)),
      tile("Requests without a member", count(pool.no_member))),
    pool.members.length > 50 && controls,
    !mayOperate() && h("p", { class: "quiet" }, "To change the state of members, log in with a token that has the role operate."),
    table("Members", [
      { name: "Member", cell: (member) => h("span", { class: "mono" }, member.name ? `${member.name} (${member.address})` : member.address) },
      { name: "State", cell: (member) => mark(memberState(member)) },
      { name: "Weight", isNumber: true, cell: (member) => weight(pool, member, redraw) },
      { name: "Requests", isNumber: true, cell: (member) => count(member.requests) },
      { name: "Under way", isNumber: true, cell: (member) => count(member.requests_active) },
      { name: "5xx", isNumber: true, cell: (member) => count(member.responses["5xx"]) },
      { name: "P99", isNumber: true, cell: (member) => span(member.response_duration?.p99_ms) },
      { name: "Monitors", isWide: true, cell: monitors },
      { name: "Change", cell: (member) => buttons(pool, member, redraw) },
    ], shown, (member) => member.address, "The pool has no members."));
}

function monitors(member) {
  const lines = member.monitors.map((monitor) => h("div", null, `${monitor.type}: ${monitor.state}`, monitor.state !== "up" && monitor.last_failure ? `, ${monitor.last_failure}` : null));
  if (member.ejected_why) lines.unshift(h("div", null, `ejected: ${member.ejected_why}`));
  return lines.length > 0 ? lines : h("span", { class: "quiet" }, "none");
}

function buttons(pool, member, redraw) {
  const isAllowed = mayOperate();
  return CHANGES.filter(({ to }) => to !== member.administrative).map(({ to, name, means }) => h("button", {
    type: "button",
    disabled: !isAllowed,
    title: isAllowed ? means : "Log in with a token that has the role operate",
    "aria-label": `${name} ${member.address}`,
    onclick: () => change(pool, member, { to, name, means }, redraw),
  }, name));
}

function weight(pool, member, redraw) {
  if (!mayChange()) return count(member.weight);
  return h("button", { type: "button", "aria-label": `Weight of ${member.address}: ${member.weight}`, onclick: () => setWeight(pool, member, redraw) }, count(member.weight));
}

async function setWeight(pool, member, redraw) {
  const text = "A member gets requests in the ratio of its weight; with 0 it keeps its clients and gets no new ones. The change survives restarts.";
  const answer = await prompt(`Weight of ${member.address} in ${pool.name}`, text, "Weight", "Change", { type: "number", min: 0, max: 256, value: member.weight });
  if (answer === null) return;
  try {
    const path = `/pools/${pointer(pool.name)}/members/${pointer(member.address)}/weight`;
    const body = { comment: "weight, from the dashboard", changes: [{ op: "set", path, value: Number(answer) }] };
    const { version } = await call("changes", { method: "POST", body });
    tell(`Version ${version}: ${member.address} has weight ${answer}.`);
    redraw();
  } catch (problem) {
    tellProblem(problem);
  }
}

/** A name in a JSON pointer (RFC 6901). */
function pointer(name) {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

async function change(pool, member, { to, name, means }, redraw) {
  const left = pool.members_in_service - (memberState(member)[0] === "up" && to !== "enabled" ? 1 : 0);
  const isLast = to !== "enabled" && left <= 0;
  const text = isLast ? `${means} No other member of ${pool.name} takes requests then.` : means;
  if (!await confirm(`${name} ${member.address} in ${pool.name}?`, text, name, isLast)) return;
  try {
    const path = `pools/${part(pool.name)}/members/${part(member.address)}/state`;
    const changed = await call(path, { method: "PUT", body: { state: to } });
    pool.members = pool.members.map((it) => (it.address === member.address ? changed.member : it));
    pool.members_in_service = changed.members_in_service;
    tell(`${member.address} is ${changed.member.administrative} now; ${changed.members_in_service} members of ${pool.name} take requests.`);
    redraw();
  } catch (problem) {
    tellProblem(problem);
  }
}
