// Chooses the view by the fragment of the address, follows the stream that it needs, and draws.

import { call, hasToken, keepToken, watch } from "./api.js";
import { prompt, tell, tellProblem } from "./dialogs.js";
import { h, update } from "./dom.js";
import { mark } from "./parts.js";
import { refreshOne, state, take } from "./state.js";
import { processHealth } from "./words.js";
import * as certificates from "./views/certificates.js";
import * as configuration from "./views/configuration.js";
import * as explain from "./views/explain.js";
import * as firewall from "./views/firewall.js";
import * as map from "./views/map.js";
import * as overview from "./views/overview.js";
import * as policies from "./views/policies.js";
import * as pools from "./views/pools.js";
import * as reports from "./views/reports.js";
import * as requests from "./views/requests.js";
import * as servers from "./views/servers.js";

/** From one reading of a list to the next. */
const READ_INTERVAL_MS = 10_000;
/** From the end of a stream to the next one; longer after each that fails. */
const AGAIN_MS = [500, 2_000, 5_000, 15_000];
/** Views whose searches and forms are remembered. */
const MEMORIES_MAX = 30;

const VIEWS = { "": overview, servers, map, pools, policies, firewall, requests, explain, certificates, configuration, reports };
const content = document.getElementById("content");
const memories = new Map();
let following = null;
let timer = null;

function place() {
  const [view = "", name] = location.hash.replace(/^#\/?/, "").split("/");
  return { view: view in VIEWS ? view : "", name: name === undefined ? undefined : decodeURIComponent(name) };
}

function memoryOf(key) {
  if (!memories.has(key)) memories.set(key, {});
  if (memories.size > MEMORIES_MAX) memories.delete(memories.keys().next().value);
  return memories.get(key);
}

function draw() {
  const { view, name } = place();
  drawFrame(view);
  if (state.problem) {
    const { message, help, status } = state.problem;
    content.dataset.key = "";
    return update(content, h("div", null, h("div", null, h("h1", null, status === 401 ? "Log in" : "No data"),
      h("ul", { class: "problems" }, h("li", null, message, help ? `. ${help}` : null)))));
  }
  if (!state.document) return;
  const key = `${view}/${name ?? ""}`;
  const drawn = h("div", null, VIEWS[view].draw(name, memoryOf(key), draw, follow));
  // Another view begins anew; the same one is brought up to date where it stands.
  if (content.dataset.key !== key) {
    content.replaceChildren(...drawn.childNodes);
    content.dataset.key = key;
  } else {
    update(content, drawn);
  }
  // What comes when it is scrolled to: being observed anew, it is told of at once if it is seen already.
  for (const more of content.querySelectorAll("[data-more]")) {
    seen.unobserve(more);
    seen.observe(more);
  }
}

const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => entry.target.click()));

function drawFrame(view) {
  document.title = `${VIEWS[view].title} – Weirgate`;
  const links = Object.entries(VIEWS).map(([name, { title }]) => h("a", { href: `#/${name}`, "aria-current": name === view ? "page" : null }, title));
  update(document.getElementById("nav"), h("div", null, links));
  const process = state.document?.process;
  const health = state.problem ? ["no answer", "bad"] : !process ? ["…", "off"] : processHealth(process);
  update(document.getElementById("health"), h("div", null, mark(health)));
  document.getElementById("login").textContent = state.whoami?.user ? `Log out ${state.whoami.user}` : hasToken() ? "Log out" : "Log in";
}

/** Follows the stream of the open view, from the beginning. The page draws when the first event is there. */
async function follow() {
  following?.abort();
  clearTimeout(timer);
  const current = following = new AbortController();
  const { signal } = current;
  for (let failed = 0; !signal.aborted && !document.hidden; failed += 1) {
    const again = () => {
      failed = -1;
    };
    try {
      if (!state.whoami) state.whoami = await call("whoami", { signal });
      await read(signal);
      const show = (name, data) => {
        again();
        take(name, data);
        state.problem = null;
        draw();
      };
      await watch(`dashboard?${query()}`, show, { signal }).catch((problem) => {
        if (problem.status !== 404) throw problem;
        // Nothing has this name. The view shows that; the stream keeps the rest of the page up to date.
        return watch("dashboard", show, { signal });
      });
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 401) keepToken(null);
      Object.assign(state, { problem, whoami: null });
      draw();
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS[Math.min(failed + 1, AGAIN_MS.length - 1)]));
  }
}

/** What the stream shows. */
function query() {
  const { view, name } = place();
  const wanted = VIEWS[view].watches?.(name, memoryOf(`${view}/${name ?? ""}`)) ?? { view: "process" };
  return new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== undefined && value !== "")).toString();
}

/** Reads the lists of the open view, again and again. */
async function read(signal) {
  clearTimeout(timer);
  const { view, name } = place();
  const needs = VIEWS[view].needs(state, name, memoryOf(`${view}/${name ?? ""}`));
  if (needs.length === 0) return;
  await Promise.all(needs.map((name) => refreshOne(name, signal)));
  timer = setTimeout(() => read(signal).then(draw, () => signal.aborted || follow()), READ_INTERVAL_MS);
}

async function logIn() {
  if (hasToken()) {
    keepToken(null);
    state.whoami = null;
    return follow();
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
  follow();
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
  state.document = null;
  draw();
  document.querySelector("#nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  content.focus({ preventScroll: true });
  scrollTo(0, 0);
  follow();
});
// A tab that is not seen reads nothing.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return follow();
  following?.abort();
  clearTimeout(timer);
});
showTheme();
follow();
