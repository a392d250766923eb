// The configuration in effect, and its reloads.

import { call } from "../api.js";
import { confirm, tell, tellProblem } from "../dialogs.js";
import { h } from "../dom.js";
import { mark, table, tile } from "../parts.js";
import { mayOperate, state } from "../state.js";
import { count, time } from "../words.js";

export const title = "Configuration";
export const needs = ["reloads"];

const WORDS = { reading: ["being read", "warn"], waiting: ["waits for first probes", "warn"], in_force: ["in effect", "good"], refused: ["refused", "bad"] };

export function draw(_, __, redraw) {
  const { configuration } = state.process;
  const failure = configuration.last_reload_failure;
  return h("div", null, h("h1", null, "Configuration"),
    h("div", { class: "tiles" },
      tile("In effect since", time(configuration.in_force_since)),
      tile("Reloads", count(configuration.reloads)), tile("Refused", count(configuration.reloads_failed))),
    failure && h("ul", { class: "problems" }, h("li", { class: configuration.last_reload_successful ? "warn" : null }, `${time(failure.time)}: the configuration was refused: ${failure.reason}`)),
    h("div", { class: "bar" }, h("button", {
      type: "button", class: "main", disabled: !mayOperate(),
      title: mayOperate() ? null : "Log in with a token that has the role operate", onclick: () => reload(redraw),
    }, "Reload the file")),
    table("The last reloads", [
      { name: "Number", cell: (it) => it.number },
      { name: "State", cell: (it) => mark(WORDS[it.state] ?? [it.state, "off"]) },
      { name: "Changes", isWide: true, cell: (it) => [it.changes.map((change) => h("div", null, change)), it.changes_untold > 0 && `and ${it.changes_untold} more`] },
      { name: "Reason", isWide: true, cell: (it) => [it.reason, it.diagnostics && h("pre", { class: "mono" }, it.diagnostics)] },
    ], [...state.reloads].sort((one, other) => other.number - one.number), (it) => String(it.number), "The file was not read again since the start."));
}

async function reload(redraw) {
  if (!await confirm("Reload the configuration file?", "It takes effect as a whole, or is refused as a whole. Open connections and requests stay.", "Reload")) return;
  try {
    const { number } = await call("reload", { method: "POST", body: {} });
    tell(`Reload ${number} has begun.`);
    redraw();
  } catch (problem) {
    tellProblem(problem);
  }
}
