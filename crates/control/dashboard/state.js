// What is known of weir: the document of the open view, as the stream keeps it up to date, and lists that other views read.

import { all, call } from "./api.js";

/** Points that are kept for charts: four minutes. */
const POINTS_MAX = 120;

export const state = {
  whoami: null,
  /** The process, and what the view shows. */
  document: null,
  /** The points of the view's charts, the oldest first. */
  points: [],
  /** By virtual server in the list: requests per second. */
  rows: new Map(),
  problem: null,
  process: null,
  policies: [],
  certificates: [],
  reloads: [],
  versions: [],
  reports: [],
  diff: { items: [] },
  events: [],
  findings: null,
  requests: { items: [] },
  request: null,
  explanation: null,
};

/** Takes an event of the stream. */
export function take(name, data) {
  if (name === "whole") {
    state.document = data.document;
    state.points = data.points;
    state.rows = new Map(Object.entries(data.rows));
  } else if (name === "change" && state.document) {
    merge(state.document, data.patch);
    if (data.point) keep(state.points, data.point);
    keepRows();
  }
}

/** A JSON merge patch (RFC 7396). */
function merge(target, patch) {
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete target[key];
    else if (typeof value === "object" && !Array.isArray(value) && typeof target[key] === "object" && target[key] !== null) merge(target[key], value);
    else target[key] = value;
  }
}

function keep(points, point) {
  points.push(point);
  if (points.length > POINTS_MAX) points.shift();
}

/** Adds a point to the line of each row, and forgets rows that are gone. */
function keepRows() {
  const rows = state.document.servers;
  if (!rows) return;
  for (const name of [...state.rows.keys()]) if (!(name in rows.items)) state.rows.delete(name);
  for (const name of rows.order) {
    if (!state.rows.has(name)) state.rows.set(name, []);
    keep(state.rows.get(name), rows.items[name].requests_per_second);
  }
}

/** A line of a chart. */
export function series(key) {
  return state.points.map((point) => point[key] ?? null);
}

/** The last point of the charts. */
export function last(key) {
  return state.points.at(-1)?.[key] ?? null;
}

/** Reads requests, or one; tells why there are none. */
async function refreshRequests(path, options) {
  const found = await call(path, options).catch((problem) => {
    if (problem.status !== 404) throw problem;
    return { items: [], missing: [problem.message, problem.help].filter(Boolean).join(". ") };
  });
  if (path.endsWith("/explanation")) state.explanation = found;
  else if (path.startsWith("requests/")) state.request = found;
  else state.requests = found;
}

const LISTS = ["policies", "certificates", "versions", "reports"];
const EVENTS = 100;

/** Reads what one view needs beside the stream. */
export async function refreshOne(name, signal) {
  const options = { signal };
  if (name.startsWith("requests")) await refreshRequests(name, options);
  else if (LISTS.includes(name)) state[name] = await all(name, options);
  else if (name === "reloads") state.reloads = (await call(name, options)).items;
  else if (name === "events") state.events = (await call(`waf/events?limit=${EVENTS}`, options)).items;
  else if (name === "findings") state.findings = await call("waf/findings", options);
  else state[name] = await call(name, options);
}

/** Whether the user may change the state of members, reload, and return to an earlier version. */
export function mayOperate() {
  return ["operate", "admin"].includes(state.whoami?.role);
}

/** Whether the user may change the configuration. */
export function mayChange() {
  return state.whoami?.role === "admin";
}
