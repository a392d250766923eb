// Certificates, their remaining days and their renewal.

import { h } from "../dom.js";
import { browse, link, mark, table } from "../parts.js";
import { state } from "../state.js";
import { count, time } from "../words.js";

export const title = "Certificates";
export const needs = () => ["certificates"];

const [SOON, VERY_SOON] = [30, 7];

/** Whether it stands in for one that the authority has not issued yet. */
const isStandIn = ({ acme }) => acme && !acme.renews_at;

function stateOf(it) {
  if (isStandIn(it)) return ["stand-in", "warn"];
  if (it.days_left < 0) return ["ended", "bad"];
  if (it.days_left < VERY_SOON) return ["ends very soon", "bad"];
  return it.days_left < SOON ? ["ends soon", "warn"] : ["valid", "good"];
}

/** The renewal of a certificate by ACME: its state, and below it why and when. */
function renewal({ acme }) {
  if (!acme) return "by hand";
  const next = acme.next_try ? `next try ${time(acme.next_try)}` : "next try soon";
  if (acme.failures > 0 && acme.reason) {
    const times = acme.failures === 1 ? "failed once" : `failed ${acme.failures} times`;
    return [mark([times, "bad"]), h("div", { class: "quiet" }, acme.reason), h("div", { class: "quiet" }, next)];
  }
  if (!acme.renews_at) return [mark([acme.state, "warn"]), h("div", { class: "quiet" }, `${acme.authority} has not issued it yet`)];
  return [h("div", null, time(acme.renews_at)), h("div", { class: "quiet" }, `by ${acme.authority}`)];
}

function names(it) {
  const all = it.names.length > 0 ? it.names : [it.subject];
  const isToldByNames = all.some((name) => it.subject === name || it.subject === `CN=${name}`);
  return [all.map((name) => h("div", null, name)), !isToldByNames && h("div", { class: "quiet" }, it.subject)];
}

export function draw(_, memory, redraw) {
  const rows = [...state.certificates].sort((one, other) => one.days_left - other.days_left);
  const { controls, shown } = browse(rows, (it) => `${it.names.join(" ")} ${it.subject} ${it.virtual_server ?? ""}`, memory, redraw);
  return h("div", null, h("h1", null, "Certificates"), controls, table("Certificates, the first to end on top", [
    { name: "Names", isWide: true, cell: names },
    { name: "State", cell: (it) => mark(stateOf(it)) },
    { name: "Days left", isNumber: true, cell: (it) => count(it.days_left) },
    { name: "Valid until", cell: (it) => time(it.not_after) },
    { name: "Renewal", isWide: true, cell: renewal },
    { name: "Virtual server", cell: (it) => (it.virtual_server ? link("servers", it.virtual_server) : "admin listener") },
  ], shown, (it) => it.id, "No virtual server uses TLS."));
}
