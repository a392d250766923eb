// Calls of the admin API. A token stays in this tab, and is dropped when the tab closes.

const TOKEN = "weir-token";
const PAGE = 1000;

/** An answer that is not what was wanted: a problem document (RFC 9457) or no answer at all. */
export class Problem extends Error {
  constructor(status, detail, help, findings = [], needs = undefined) {
    super(detail);
    this.status = status;
    this.help = help;
    this.findings = findings;
    this.needs = needs;
  }
}

/** Whether the user has logged in. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

/** Keeps a token; `null` forgets it. */
export function keepToken(token) {
  if (token === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

/** An answer, with the token if there is one. */
async function send(path, accept, { method = "GET", body, ifMatch, signal }) {
  const headers = { Accept: accept };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (ifMatch !== undefined) headers["If-Match"] = ifMatch;
  let response;
  try {
    response = await fetch(`v1/${path}`, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    throw unreached(error);
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => null);
  throw new Problem(response.status, problem?.detail ?? `status ${response.status}`, problem?.help, problem?.diagnostics ?? [], problem?.needs);
}

function unreached(error) {
  return error.name === "AbortError" ? error : new Problem(0, "weir does not answer", "It may have been stopped, or the network is down.");
}

/** One call. Returns the document. */
export async function call(path, options = {}) {
  return (await send(path, "application/json", options)).json();
}

/** A page as a file. */
export async function file(path, options = {}) {
  return (await send(path, "*/*", options)).blob();
}

/** Reads a stream of events until it ends: `take` gets the name and the data of each. */
export async function watch(path, take, options = {}) {
  const response = await send(path, "text/event-stream", options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const events = (text + chunk.value).split("\n\n");
      text = events.pop();
      for (const event of events) take(...fields(event));
    }
  } catch (error) {
    throw unreached(error);
  }
}

function fields(event) {
  const lines = event.split("\n").map((line) => line.split(/: ?(.*)/s));
  const data = lines.filter(([name]) => name === "data").map(([, value]) => value).join("\n");
  return [lines.find(([name]) => name === "event")?.[1], data ? JSON.parse(data) : null];
}

/** All items of a list, page by page. */
export async function all(path, options) {
  const items = [];
  let after = null;
  do {
    const page = await call(`${path}?limit=${PAGE}${after === null ? "" : `&after=${encodeURIComponent(after)}`}`, options);
    items.push(...page.items);
    after = page.next;
  } while (after !== null);
  return items;
}

/** A name as a part of a path. */
export function part(name) {
  return encodeURIComponent(name);
}
