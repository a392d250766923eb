// The latest documents of the API, and samples of figures since the page was opened.

import { all, call } from "./api.js";

/** Samples that are kept for charts. */
const SAMPLES_MAX = 120;

export const state = {
  process: null,
  whoami: null,
  servers: [],
  pools: new Map(),
  policies: [],
  certificates: [],
  reloads: [],
  versions: [],
  diff: { items: [] },
  /** By virtual server, and of all of them under the empty name. */
  history: new Map(),
  problem: null,
};

/** Reads what every view needs. */
export async function refresh(signal) {
  const options = { signal };
  const [process, servers, pools] = await Promise.all([
    call("process", options), all("virtual-servers", options), all("pools", options),
  ]);
  Object.assign(state, { process, servers, pools: new Map(pools.map((pool) => [pool.name, pool])), problem: null });
  sample(servers);
}

/** Reads what one view needs. */
export async function refreshOne(name, signal) {
  if (name === "diff") state.diff = await call(name, { signal });
  else state[name] = name === "reloads" ? (await call(name, { signal })).items : await all(name, { signal });
}

function sample(servers) {
  const at = performance.now();
  const gone = new Set(state.history.keys());
  const total = { at, requests: 0, failed: 0, answered: 0, ms: 0, open: 0, sent: 0, blocked: 0 };
  const keep = (name, figures) => {
    gone.delete(name);
    const samples = state.history.get(name) ?? [];
    const before = samples.at(-1);
    // A new process counts from 0.
    if (before && figures.requests < before.requests) samples.length = 0;
    samples.push(figures);
    if (samples.length > SAMPLES_MAX) samples.shift();
    state.history.set(name, samples);
  };
  for (const server of servers) {
    const { count = 0, mean_ms: mean = 0 } = server.request_duration ?? {};
    const figures = {
      at,
      requests: server.requests + (server.type === "http" ? 0 : server.connections),
      failed: server.responses?.["5xx"] ?? 0,
      answered: count,
      ms: count * (mean ?? 0),
      open: server.connections_open,
      sent: server.bytes_sent,
      blocked: server.waf?.blocked ?? 0,
    };
    keep(server.name, figures);
    for (const key of Object.keys(total)) if (key !== "at") total[key] += figures[key];
  }
  keep("", total);
  for (const name of gone) state.history.delete(name);
}

/** A series for a chart: changes per second of a counter, or of the last argument per one of `per`. */
export function series(name, key, per) {
  const samples = state.history.get(name) ?? [];
  return samples.slice(1).map((now, index) => {
    const before = samples[index];
    const change = now[key] - before[key];
    if (!per) return change / ((now.at - before.at) / 1000);
    const times = now[per] - before[per];
    return times > 0 ? change / times : null;
  });
}

/** A series of a figure that is no counter. */
export function levels(name, key) {
  return (state.history.get(name) ?? []).map((sample) => sample[key]);
}

/** Whether the user may change the state of members, reload, and return to an earlier version. */
export function mayOperate() {
  return ["operate", "admin"].includes(state.whoami?.role);
}

/** Whether the user may change the configuration. */
export function mayChange() {
  return state.whoami?.role === "admin";
}
