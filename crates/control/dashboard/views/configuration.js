// The configuration in force, and its reloads.

import { all, call } from "../api.js";
import { confirm, tell, tellProblem } from "../dialogs.js";
import { h } from "../dom.js";
import { mark, table, tile } from "../parts.js";
import { mayOperate, state } from "../state.js";
import { count, duration, time } from "../words.js";

export const title = "Configuration";
export const needs = () => ["process", "reloads", "versions", "diff"];

const EFFECTS = { added: "good", changed: "good", removed: "warn", redundant: "off", stale: "bad" };
const VERSIONS_MAX = 50;
const WORDS = { reading: ["being read", "warn"], waiting: ["waits for first probes", "warn"], in_force: ["in effect", "good"], refused: ["refused", "bad"] };

export function draw(_, __, ___, redraw) {
  if (!state.process) return null;
  const { configuration } = state.process;
  const failure = configuration.last_reload_failure;
  return h("div", null, h("h1", null, "Configuration"),
    h("div", { class: "tiles" },
      tile("In effect for", duration((Date.now() - new Date(configuration.in_force_since)) / 1000)),
      tile("Reloads", count(configuration.reloads)), tile("Refused", count(configuration.reloads_failed))),
    failure && h("ul", { class: "problems" }, h("li", { class: configuration.last_reload_successful ? "warn" : null }, `${time(failure.time)}: the configuration was refused: ${failure.reason}`)),
    h("div", { class: "bar" }, h("button", {
      type: "button", class: "main", disabled: !mayOperate(),
      title: mayOperate() ? null : "Log in with a token that has the role operate", onclick: () => reload(redraw),
    }, "Reload the file")),
    h("h2", null, "Changes in front of the files"),
    h("p", { class: "quiet" }, "Changes over the API never touch the files. They survive reloads and restarts; each transaction makes a version."),
    table("What differs from the files", [
      { name: "Place", isWide: true, cell: (it) => h("span", { class: "mono" }, it.path) },
      { name: "Effect", cell: (it) => mark([it.effect, EFFECTS[it.effect] ?? "off"]) },
      { name: "In the files", isWide: true, cell: (it) => [h("div", { class: "mono written" }, it.file ?? "–"), it.place && h("div", { class: "quiet mono" }, it.place)] },
      { name: "Changed to", isWide: true, cell: (it) => h("div", { class: "mono written" }, it.overlay ?? "–") },
      { name: "Remark", isWide: true, cell: (it) => it.reason },
    ], state.diff.items, (it) => it.path, "Nothing: the files say it all."),
    h("h2", null, "Versions"),
    table("Versions, the newest on top", [
      { name: "Version", cell: (it) => it.number },
      { name: "State", cell: (it) => mark(it.confirm_until ? ["to be confirmed", "warn"] : it.in_force ? ["in effect", "good"] : ["earlier", "off"]) },
      { name: "Time", cell: (it) => time(it.time) },
      { name: "Author", isWide: true, cell: (it) => it.author },
      { name: "What", isWide: true, cell: what },
      { name: "Change", cell: (it) => versionButtons(it, redraw) },
    ], [...state.versions].reverse().slice(0, VERSIONS_MAX), (it) => String(it.number), "The configuration was not changed over the API."),
    state.versions.some((it) => it.in_force) && h("div", { class: "bar" }, h("button", {
      type: "button", disabled: !mayOperate(), onclick: () => rollBack(0, redraw),
    }, "Return to the files")),
    h("h2", null, "Reloads"),
    table("The last reloads", [
      { name: "Number", cell: (it) => it.number },
      { name: "State", cell: (it) => mark(WORDS[it.state] ?? [it.state, "off"]) },
      { name: "Changes", isWide: true, cell: (it) => [it.changes.map((change) => h("div", null, change)), it.changes_omitted > 0 && `and ${it.changes_omitted} more`] },
      { name: "Reason", isWide: true, cell: (it) => [it.reason, it.diagnostics && h("pre", { class: "mono" }, it.diagnostics)] },
    ], [...state.reloads].sort((one, other) => other.number - one.number), (it) => String(it.number), "The file was not read again since the start."));
}

function what(version) {
  const lines = version.changes.slice(0, 5).map((it) => h("div", { class: "mono" }, it.op === "set" ? `${it.path} = ${JSON.stringify(it.value)}` : `${it.path} removed`));
  if (version.reverted) lines.push(h("div", null, `undoes version ${version.reverted}`));
  if (version.rolled_back_to !== null) lines.push(h("div", null, version.rolled_back_to === 0 ? "back to the files" : `back to version ${version.rolled_back_to}`));
  return [version.comment && h("div", null, version.comment), lines, version.changes.length > 5 && `and ${version.changes.length - 5} more`];
}

function versionButtons(version, redraw) {
  if (version.confirm_until) {
    return h("button", { type: "button", disabled: !mayOperate(), onclick: () => confirmVersion(version, redraw) }, `Confirm until ${new Date(version.confirm_until).toLocaleTimeString()}`);
  }
  return h("div", { class: "bar" },
    h("button", { type: "button", disabled: !mayOperate(), "aria-label": `Undo version ${version.number}`, onclick: () => revert(version.number, redraw) }, "Undo"),
    !version.in_force && h("button", { type: "button", disabled: !mayOperate(), "aria-label": `Return to version ${version.number}`, onclick: () => rollBack(version.number, redraw) }, "Return"));
}

async function revert(number, redraw) {
  if (!await confirm(`Undo version ${number}?`, "What it has changed becomes what it was before, as a new version. Later versions stay. If one of them has changed the same again, nothing changes.", "Undo")) return;
  await done(`versions/${number}/revert`, `Version ${number} is undone.`, redraw);
}

/** The versions that a return takes back, as weir has them now. */
async function later(number) {
  const versions = (await all("versions")).filter((it) => it.number > number).reverse();
  const lines = versions.slice(0, VERSIONS_MAX).map((it) => h("li", null, h("b", null, `Version ${it.number}`), ` by ${it.author}, ${time(it.time)}`, what(it)));
  const more = versions.length - lines.length;
  return { newest: versions[0]?.number ?? number, count: versions.length, list: h("ul", null, lines, more > 0 && h("li", null, `and ${more} more`)) };
}

async function rollBack(number, redraw) {
  const name = number === 0 ? "the files without changes" : `version ${number}`;
  const gone = await later(number).catch((problem) => tellProblem(problem));
  if (!gone) return;
  const text = [
    h("p", null, "The configuration becomes what it was then, as a new version. Open connections and requests stay."),
    h("p", null, gone.count === 1 ? "This version goes:" : `These ${gone.count} versions go:`), gone.list,
    h("p", { class: "quiet" }, "To take back one version alone, undo it instead."),
  ];
  if (!await confirm(`Return to ${name}?`, text, "Return", true)) return;
  await done(`versions/${number}/rollback`, `The configuration is that of ${name}.`, redraw, `"version-${gone.newest}"`);
}

async function confirmVersion({ number }, redraw) {
  await done(`versions/${number}/confirm`, `Version ${number} stays.`, redraw);
}

async function done(path, text, redraw, ifMatch) {
  try {
    await call(path, { method: "POST", body: {}, ifMatch });
    tell(text);
    redraw();
  } catch (problem) {
    tellProblem(problem);
  }
}

async function reload(redraw) {
  if (!await confirm("Reload the configuration file?", "It takes effect as a whole, or is refused as a whole. Open connections and requests stay.", "Reload")) return;
  try {
    tell(reloaded(await call("reload", { method: "POST", body: {} })));
  } catch (problem) {
    tellProblem(problem);
  }
  redraw();
}

function reloaded({ number, state: reached, changes, changes_omitted: more, without_effect: idle }) {
  if (reached !== "in_force") return `Reload ${number} goes on: it waits for the first probes of new members.`;
  const count = changes.length + more;
  if (idle.length > 0) return `Reload ${number} is in effect, with ${count} ${count === 1 ? "change" : "changes"}. ${idle.slice(0, 5).join(". ")}${idle.length > 5 ? `, and ${idle.length - 5} more` : ""}.`;
  return count === 0 ? `Reload ${number} is in effect: no setting has changed, and none of the files that the settings name.` : `Reload ${number} is in effect, with ${count} ${count === 1 ? "change" : "changes"}.`;
}
