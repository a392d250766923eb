// Reports of `weir bench`: pages by themselves, which open in another tab without rights.

import { file, part } from "../api.js";
import { tellProblem } from "../dialogs.js";
import { h } from "../dom.js";
import { browse, table } from "../parts.js";
import { state } from "../state.js";
import { bytes, time } from "../words.js";

export const title = "Reports";
export const needs = () => ["reports"];

const LOOPBACK = ["localhost", "[::1]"];

export function draw(_, memory, redraw) {
  const { controls, shown } = browse(state.reports, (it) => it.name, memory, redraw);
  return h("div", null, h("h1", null, "Reports"),
    h("p", { class: "quiet" }, "Comparisons of performance, made by ", h("code", null, "weir bench run"), ", in the folder ", h("code", null, "admin.reports"), "."),
    state.reports.length > 10 && controls,
    table("Reports, the newest on top", [
      { name: "Report", cell: name },
      { name: "Written", cell: (it) => time(it.written) },
      { name: "Size", isNumber: true, cell: (it) => bytes(it.bytes) },
      { name: "File", cell: (it) => h("button", { type: "button", disabled: !it.is_shown, "aria-label": `Save ${it.name}`, onclick: () => save(it.name) }, "Save") },
    ], shown, (it) => it.name, "The folder has no reports."));
}

/** Over loopback everyone may read. Elsewhere a page that opens by itself has no token, and the report is saved instead. */
function name(it) {
  const isOpen = LOOPBACK.includes(location.hostname) || location.hostname.startsWith("127.");
  if (!isOpen || !it.is_shown) return it.name;
  return h("a", { href: `v1/reports/${part(it.name)}`, target: "_blank", rel: "noopener noreferrer" }, it.name);
}

async function save(name) {
  try {
    const url = URL.createObjectURL(await file(`reports/${part(name)}`));
    h("a", { href: url, download: `${name}.html` }).click();
    URL.revokeObjectURL(url);
  } catch (problem) {
    tellProblem(problem);
  }
}
