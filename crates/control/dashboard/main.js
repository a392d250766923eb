// Selects the view by the fragment of the URL, reads the API, and renders.

import { call, hasToken, keepToken } from "./api.js";
import { prompt, tell, tellProblem } from "./dialogs.js";
import { h, update } from "./dom.js";
import { mark } from "./parts.js";
import { refresh, refreshOne, state } from "./state.js";
import * as certificates from "./views/certificates.js";
import * as configuration from "./views/configuration.js";
import * as explain from "./views/explain.js";
import * as map from "./views/map.js";
import * as overview from "./views/overview.js";
import * as policies from "./views/policies.js";
import * as pools from "./views/pools.js";
import * as servers from "./views/servers.js";

/** From one look at weir to the next; longer in a tab that is not seen, and while answers are slow. */
const INTERVAL_MS = 2000;
const HIDDEN_INTERVAL_MS = 20000;

const VIEWS = { "": overview, servers, map, pools, policies, explain, certificates, configuration };
const content = document.getElementById("content");
const memories = new Map();
let timer = null;
let reading = null;

function place() {
  const [view = "", name] = location.hash.replace(/^#\/?/, "").split("/");
  return { view: view in VIEWS ? view : "", name: name === undefined ? undefined : decodeURIComponent(name) };
}

function draw() {
  const { view, name } = place();
  drawFrame(view);
  if (state.problem) {
    const { message, help, status } = state.problem;
    const drawn = h("div", null, h("div", null, h("h1", null, status === 401 ? "Log in" : "No data"),
      h("ul", { class: "problems" }, h("li", null, message, help ? `. ${help}` : null))));
    return update(content, drawn);
  }
  if (!state.process) return;
  const key = `${view}/${name ?? ""}`;
  if (!memories.has(key)) memories.set(key, {});
  const drawn = h("div", null, VIEWS[view].draw(name, memories.get(key), draw));
  // A new view replaces the content; the same view is updated in place.
  if (content.dataset.key !== key) {
    content.replaceChildren(...drawn.childNodes);
    content.dataset.key = key;
  } else {
    update(content, drawn);
  }
}

function drawFrame(view) {
  document.title = `${VIEWS[view].title} – Weirgate`;
  const links = Object.entries(VIEWS).map(([name, { title }]) => h("a", { href: `#/${name}`, "aria-current": name === view ? "page" : null }, title));
  update(document.getElementById("nav"), h("div", null, links));
  const process = state.process;
  const health = state.problem ? ["no answer", "bad"]
    : !process ? ["…", "off"]
      : process.draining ? ["draining", "warn"]
        : process.problems.length ? [`${process.problems.length} ${process.problems.length === 1 ? "problem" : "problems"}`, "bad"] : ["serving", "good"];
  update(document.getElementById("health"), h("div", null, mark(health)));
  document.getElementById("login").textContent = state.whoami?.user ? `Log out ${state.whoami.user}` : hasToken() ? "Log out" : "Log in";
}

async function read() {
  clearTimeout(timer);
  reading?.abort();
  const current = reading = new AbortController();
  const began = performance.now();
  try {
    if (!state.whoami) state.whoami = await call("whoami", { signal: current.signal });
    await Promise.all([refresh(current.signal), ...VIEWS[place().view].needs.map((name) => refreshOne(name, current.signal))]);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (problem.status === 401) keepToken(null);
    Object.assign(state, { problem, whoami: null });
    content.dataset.key = "";
  }
  draw();
  const took = performance.now() - began;
  timer = setTimeout(read, Math.max(document.hidden ? HIDDEN_INTERVAL_MS : INTERVAL_MS, 4 * took));
}

async function logIn() {
  if (hasToken()) {
    keepToken(null);
    state.whoami = null;
    return read();
  }
  const token = await prompt("Log in", "`weir token new` makes a token. It stays in this tab until you close it or log out.", "Token", "Log in");
  if (!token) return;
  keepToken(token);
  try {
    state.whoami = await call("whoami");
    tell(`You are ${state.whoami.user}, with the role ${state.whoami.role}.`);
  } catch (problem) {
    keepToken(null);
    tellProblem(problem);
  }
  read();
}

const themes = ["auto", "light", "dark"];

function showTheme() {
  const chosen = localStorage.getItem("weir-theme") ?? "auto";
  const isDark = chosen === "dark" || chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  document.getElementById("theme").textContent = `Theme: ${chosen}`;
}

document.getElementById("theme").onclick = () => {
  const chosen = localStorage.getItem("weir-theme") ?? "auto";
  localStorage.setItem("weir-theme", themes[(themes.indexOf(chosen) + 1) % themes.length]);
  showTheme();
};
document.getElementById("login").onclick = logIn;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
addEventListener("hashchange", () => {
  draw();
  content.focus({ preventScroll: true });
  scrollTo(0, 0);
  read();
});
document.addEventListener("visibilitychange", () => document.hidden || read());
showTheme();
read();
