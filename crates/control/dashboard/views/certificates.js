// Certificates and their remaining days.

import { h } from "../dom.js";
import { browse, link, mark, table } from "../parts.js";
import { state } from "../state.js";
import { time } from "../words.js";

export const title = "Certificates";
export const needs = () => ["certificates"];

const [SOON, VERY_SOON] = [30, 7];

/** The renewal of a certificate by ACME. */
function renewal(acme) {
  if (!acme) return "by hand";
  if (acme.failures > 0 && acme.reason) return mark([`failed ${acme.failures} ${acme.failures === 1 ? "time" : "times"}: ${acme.reason}; next try ${acme.next_try ? time(acme.next_try) : "soon"}`, "bad"]);
  if (!acme.renews_at) return mark([`${acme.state}: no certificate of ${acme.authority} yet`, "warn"]);
  return `${time(acme.renews_at)} by ${acme.authority}`;
}

export function draw(_, memory, redraw) {
  const rows = [...state.certificates].sort((one, other) => one.days_left - other.days_left);
  const { controls, shown } = browse(rows, (it) => `${it.names.join(" ")} ${it.subject} ${it.virtual_server ?? ""}`, memory, redraw);
  return h("div", null, h("h1", null, "Certificates"), controls, table("Certificates, the first to end on top", [
    { name: "Names", isWide: true, cell: (it) => it.names.join(", ") || it.subject },
    { name: "State", cell: (it) => mark(it.days_left < 0 ? ["ended", "bad"] : it.days_left < VERY_SOON ? ["ends very soon", "bad"] : it.days_left < SOON ? ["ends soon", "warn"] : ["valid", "good"]) },
    { name: "Days left", isNumber: true, cell: (it) => it.days_left },
    { name: "Valid until", cell: (it) => time(it.not_after) },
    { name: "Renewal", isWide: true, cell: (it) => renewal(it.acme) },
    { name: "Virtual server", cell: (it) => (it.virtual_server ? link("servers", it.virtual_server) : "admin listener") },
    { name: "Subject", isWide: true, cell: (it) => it.subject },
  ], shown, (it) => it.id, "No virtual server uses TLS."));
}
