// Dialogs that ask for confirmation, and messages about results.

import { h } from "./dom.js";

const TOLD_MS = 6000;

/** Asks before something is done. `text`: one text, or elements. Resolves to whether it was confirmed. */
export function confirm(title, text, action, isDanger) {
  return ask(title, typeof text === "string" ? [h("p", null, text)] : text, action, isDanger ? "danger" : "main").then((answer) => answer !== null);
}

/** Asks for a text. Resolves to it, or to `null`. */
export function prompt(title, text, label, action, properties = { type: "password" }) {
  const input = h("input", { id: "asked", name: "asked", autocomplete: "off", required: true, ...properties });
  return ask(title, [h("p", null, text), h("label", { for: "asked" }, label), input], action, "main")
    .then((answer) => (answer === null ? null : input.value.trim()));
}

function ask(title, content, action, kind) {
  const dialog = document.getElementById("dialog");
  return new Promise((resolve) => {
    const form = h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title), content,
      h("div", { class: "bar" },
        h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"),
        h("button", { type: "submit", class: kind, value: "yes" }, action)));
    dialog.replaceChildren(form);
    dialog.returnValue = "";
    dialog.onclose = () => {
      const isConfirmed = dialog.returnValue === "yes";
      resolve(isConfirmed ? true : null);
      dialog.replaceChildren();
    };
    dialog.showModal();
  });
}

/** Tells what was done, or why not. */
export function tell(text, isBad) {
  const line = h("p", { class: isBad ? "bad" : null }, text);
  document.getElementById("told").append(line);
  setTimeout(() => line.remove(), TOLD_MS);
}

/** Tells of a problem of the API. One with findings in a configuration stays until it is closed. */
export function tellProblem(problem) {
  if (problem.findings?.length > 0) return show(problem.message, problem.findings.map(finding), problem.help);
  return tell(problem.help ? `${problem.message}. ${problem.help}` : problem.message, true);
}

/** A finding with its place: `weir.yaml:3:5`, or the path of a value that was set over the API. */
function finding({ severity, message, file, line, column, pointer, suggestion }) {
  const place = pointer ?? [file, line, column].filter((it) => it !== null && it !== undefined).join(":");
  return h("li", { class: severity === "warning" ? "warn" : null },
    h("div", { class: "mono" }, place), h("div", null, message), suggestion && h("div", { class: "quiet" }, suggestion));
}

/** Shows something that has to be read: it stays until it is closed. */
function show(title, lines, help) {
  const dialog = document.getElementById("dialog");
  dialog.replaceChildren(h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, title), h("ul", { class: "problems" }, lines), help && h("p", null, help),
    h("div", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Close"))));
  dialog.onclose = () => dialog.replaceChildren();
  dialog.showModal();
}
