// Policies and the numbers of matches of their rules.

import { h } from "../dom.js";
import { browse, link, share } from "../parts.js";
import { state } from "../state.js";
import { count } from "../words.js";

export const title = "Policies";
export const needs = () => ["policies"];

export function draw(name, memory, redraw) {
  if (name !== undefined) {
    const policy = state.policies.find((it) => it.name === name);
    return h("div", null, h("h1", null, `Policy ${name}`), policy ? rules(policy) : h("p", null, "There is no policy of this name."));
  }
  const { controls, shown } = browse(state.policies, (policy) => `${policy.name} ${policy.rules.map((rule) => rule.name).join(" ")}`, memory, redraw);
  return h("div", null, h("h1", null, "Policies"), controls,
    shown.length ? shown.map(rules) : h("p", { class: "quiet" }, "There are no policies."));
}

/** The chain of a policy's rules. */
export function rules(policy) {
  const most = Math.max(...policy.rules.map((rule) => rule.matched), 1);
  return h("section", { class: "card", "data-key": policy.name },
    h("p", { class: "caption" }, h("strong", null, policy.name), h("span", null, policy.virtual_servers.length
      ? ["of ", policy.virtual_servers.slice(0, 8).map((name, index) => [index > 0 && ", ", link("servers", name)])]
      : "of no virtual server")),
    policy.rules.map((rule, index) => h("div", { class: "rule" },
      h("span", null, rule.name === String(index + 1) ? `Rule ${rule.name}` : `${index + 1}. ${rule.name}`),
      share(rule.matched, most, `${rule.name}: matched ${rule.matched} times`),
      h("span", { class: "right" }, count(rule.matched)))));
}
