// Calls of the admin API. A token stays in this tab, and is dropped when the tab closes.

const TOKEN = "weir-token";
const PAGE = 1000;

/** An answer that is not what was wanted: a problem document (RFC 9457) or no answer at all. */
export class Problem extends Error {
  constructor(status, detail, help) {
    super(detail);
    this.status = status;
    this.help = help;
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

/** One call, with the token if there is one. Returns the document. */
export async function call(path, { method = "GET", body, signal } = {}) {
  const headers = { Accept: "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(`v1/${path}`, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "weir does not answer", "It may have been stopped, or the network is down.");
  }
  const document = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, document?.detail ?? `status ${response.status}`, document?.help);
  return document;
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
