// Elements of the page: made, found, coloured; what several parts of the console show alike.

import { tokens } from "./regions.js";

/** An element with properties (`class`, `onclick`, `aria-label`, `data-x`, …) and children. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (selector) => document.querySelector(selector);

/** A whole number for people: 12 345. */
export function count(value) {
  return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
}

/** A rate or a span, short: 0.4, 12, 3 400. */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Math.abs(value) >= 10 || value === 0 ? count(value) : value.toFixed(1);
}

const TWO = (value) => String(value).padStart(2, "0");

/** The time of day of a moment (milliseconds since 1970): the reader's, or that of a zone so many minutes east. */
export function clock(moment, seconds = true, zone = -new Date(moment).getTimezoneOffset()) {
  const date = new Date(moment + zone * 60_000);
  const text = `${TWO(date.getUTCHours())}:${TWO(date.getUTCMinutes())}`;
  return seconds ? `${text}:${TWO(date.getUTCSeconds())}` : text;
}

/** An attribute's value as a text. */
export function shown(value) {
  if (value && typeof value === "object" && "low" in value) return `${value.low} – ${value.high}`;
  if (Array.isArray(value) && value.length === 2) return value.map((each) => Number(each).toFixed(4)).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** What an event is called in a list: its text or title, or else its first words. */
export function headline(id, attributes) {
  return String(attributes?.text ?? attributes?.title ?? attributes?.name ?? id);
}

export function attributeList(attributes) {
  const rows = Object.entries(attributes).filter(([name]) => !["id", "until", "time", "weights"].includes(name));
  return el("dl", { class: "attributes" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, shown(value))]).flat());
}

/** The parts of an expression in their colours; what stands between `start` and `stop` underlined. */
export function coloured(text, start = null, stop = null) {
  const parts = [];
  let at = 0;
  for (const [kind, token] of tokens(text)) {
    const isMarked = start !== null && at + token.length > start && at < stop;
    const part = kind === "space" || kind === "name" || kind === "sign" ? document.createTextNode(token) : el("span", { class: kind }, token);
    parts.push(isMarked ? el("mark", {}, part) : part);
    at += token.length;
  }
  if (start !== null && start >= text.length) parts.push(el("mark", {}, "\u00a0\u00a0"));
  return parts;
}

const TRUTHS = new Map([
  [true, ["yes", "✓", "holds"]],
  [false, ["no", "✗", "does not hold"]],
  [null, ["unknown", "?", "is not known"]],
]);

/** An explanation of the server, as a verdict and lists of predicates. */
export function explained({ subscription, event, matches, score, note, alternatives }) {
  const verdict = matches ? `${subscription} wants ${event}` : `${subscription} does not want ${event}`;
  const lists = alternatives.map(({ findings }, index) => [
    index ? el("p", { class: "quiet small" }, "or") : null,
    el("ul", { class: "findings" }, findings.map(({ predicate, truth, found }) => {
      const [kind, mark, words] = TRUTHS.get(truth);
      return el("li", {},
        el("span", { class: kind, title: words, "aria-label": words }, mark),
        el("code", {}, predicate),
        el("span", { class: "found" }, found));
    })),
  ]);
  return el("div", { class: "explanation" },
    el("p", { class: "verdict" }, verdict, matches ? ` (score ${Number(score.toFixed(3))})` : ""),
    note ? el("p", { class: "quiet small" }, note) : null,
    lists.flat());
}

/** Follow the reader's theme, or the one chosen before; `changed` is called when it changes. */
export function followTheme(changed) {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = remembered("theme");
    document.documentElement.dataset.theme = chosen ?? (wish.matches ? "dark" : "light");
    changed();
  };
  wish.addEventListener("change", apply);
  apply();
  return () => {
    remember("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply();
  };
}

/** What this browser was asked to remember; nothing where it may not. */
export function remembered(name) {
  try {
    return localStorage.getItem(`stentor.${name}`);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`stentor.${name}`, value);
  } catch {
    // Private windows and pages from a file may refuse: the wish lasts as long as the page.
  }
}
