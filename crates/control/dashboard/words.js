// Formats numbers, times and states for people.

const grouped = new Intl.NumberFormat("en");

/** `12,345` or `1.2 M`. */
export function count(number) {
  if (number < 1_000_000) return grouped.format(Math.round(number));
  for (const [unit, size] of [["G", 1e9], ["M", 1e6]]) {
    if (number >= size) return `${(number / size).toFixed(1)} ${unit}`;
  }
}

/** A number per second. */
export function rate(number) {
  return number > 0 && number < 10 ? number.toFixed(1) : count(number);
}

/** `1.5 MiB`. */
export function bytes(number) {
  return bytesAndUnit(number).join(" ");
}

/** The figure and its unit. */
export function bytesAndUnit(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (number >= 1024 && at < units.length - 1) [number, at] = [number / 1024, at + 1];
  return [number < 10 && at > 0 ? number.toFixed(1) : String(Math.round(number)), units[at]];
}

/** Milliseconds: `0.45 ms`, `12 ms`, `1.3 s`. */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 10 ? ms.toFixed(2) : Math.round(ms)} ms`;
}

/** Seconds: `3 days 4 h`. */
export function duration(seconds) {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} ${days === 1 ? "day" : "days"} ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min` : `${Math.floor(seconds)} s`;
}

/** A time of the API in local time. */
export function time(text) {
  return text ? new Date(text).toLocaleString() : "–";
}

/** The state of a member, and how it is shown. */
export function memberState(member) {
  if (member.state === "down" || member.state === "ejected") return [member.state, "bad"];
  if (member.administrative !== "enabled") return [member.administrative, "off"];
  return member.state === "up" ? ["up", "good"] : [member.state, "warn"];
}

/** How well weir serves, and how it is shown. weir decides it; the page only has the colour. */
export function processHealth({ health, problems_count: count }) {
  const shown = { serving: "good", down: "bad" }[health] ?? "warn";
  return [count > 0 ? `${health}, ${count} ${count === 1 ? "problem" : "problems"}` : health, count > 0 && shown === "warn" ? "bad" : shown];
}
