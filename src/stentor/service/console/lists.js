// The lists of the console: what happens, and who subscribes; by hand and by keys.

import { clock, count, el, find, headline } from "./page.js";
import { GONE } from "./scene.js";

const MOST_SHOWN = 80;
const MARKS = { matched: "⟶", added: "⟶", entered: "⟶", stayed: "⟶", removed: "⇢", left: "⇢" };
const FILTERS = { all: "All", event: "Events", delivery: "Deliveries" };

/** Arrow keys go from one button of a list to the next. */
function walkable(list) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...list.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    next?.focus();
    event.preventDefault();
  });
  return list;
}

function item(mark, kind, title, when, note, isChosen, onclick) {
  return el("li", {}, el("button", { type: "button", onclick, "aria-current": isChosen ? "true" : null },
    el("span", { class: `mark ${kind}`, "aria-hidden": "true" }, mark),
    el("span", { class: "title" }, title),
    el("span", { class: "when" }, when),
    note ? el("span", { class: "note" }, note) : null));
}

/** The last events and deliveries. While somebody is in the list it stands still. */
export class ActivityList {
  constructor(feed, choose) {
    this.feed = feed;
    this.choose = choose;
    this.filter = "all";
    this.chosen = null;
    this._shown = -1;
    this._list = walkable(el("ul", { class: "list", "aria-label": "What happened, the newest first" }));
    this._held = el("button", { type: "button", class: "bare small", hidden: true, onclick: () => this.show(true) }, "show newer");
    const filters = Object.entries(FILTERS).map(([name, words]) =>
      el("button", { type: "button", "aria-pressed": String(name === "all"), onclick: (event) => this._setFilter(name, event.target) }, words));
    this._filters = el("div", { class: "row", role: "group", "aria-label": "Show" }, filters);
    this._empty = el("p", { class: "empty" }, "Nothing has happened yet. Draw a circle on the map (c), publish an event into it (e), and see it arrive.");
    find("#page-activity").append(el("div", { class: "row spread" }, this._filters, this._held), this._empty, this._list);
  }

  _setFilter(name, button) {
    this.filter = name;
    for (const other of this._filters.children) other.setAttribute("aria-pressed", String(other === button));
    this.show(true);
  }

  show(isForced = false) {
    if (this._shown === this.feed.version && !isForced) return;
    const isHeld = !isForced && this._list.matches(":hover, :focus-within");
    this._held.hidden = !isHeld;
    if (isHeld) return;
    this._shown = this.feed.version;
    const entries = this.feed.entries.filter(({ kind }) => this.filter === "all" || kind === this.filter || kind === "gap");
    this._empty.hidden = entries.length > 0;
    this._list.replaceChildren(...entries.slice(-MOST_SHOWN).reverse().map((entry) => this._item(entry)));
  }

  _item(entry) {
    const when = clock(entry.time);
    if (entry.kind === "gap") return item("…", "removed", `sequences ${entry.from}–${entry.to} are lost`, when, entry.reason, false, () => {});
    if (entry.kind === "event") {
      const note = entry.matches ? `told to ${count(entry.matches)}` : "nobody wants it";
      return item("◆", "event", headline(entry.id, entry.attributes), when, note, false, () => this.choose({ kind: "event", id: entry.id }));
    }
    const attributes = this.feed.scene.events.get(entry.event)?.attributes;
    const verb = GONE.has(entry.change) ? "no longer has" : "is told";
    return item(MARKS[entry.change], GONE.has(entry.change) ? "removed" : "subscription", entry.subscription, when,
      `${verb} ${headline(entry.event, attributes)}`, false,
      () => this.choose({ kind: "delivery", event: entry.event, subscription: entry.subscription, change: entry.change }));
  }
}

/** All subscriptions that the page knows, found by a few letters. */
export class SubscriptionList {
  constructor(feed, choose) {
    this.feed = feed;
    this.choose = choose;
    this._shown = "";
    this._search = el("input", { type: "search", placeholder: "Find by id or expression", "aria-label": "Find subscriptions", oninput: () => this.show(true) });
    this._note = el("p", { class: "quiet small" });
    this._list = walkable(el("ul", { class: "list", "aria-label": "Subscriptions" }));
    find("#page-subscriptions").append(this._search, this._note, this._list);
  }

  show(isForced = false) {
    const isHeld = this._list.matches(":focus-within");
    if ((this._shown === this.feed.version || isHeld) && !isForced) return;
    this._shown = this.feed.version;
    const letters = this._search.value.toLowerCase();
    const { subscriptions, counts } = this.feed.scene;
    const found = [...subscriptions.values()].filter(({ id, expression }) => `${id} ${expression}`.toLowerCase().includes(letters));
    const more = found.length > MOST_SHOWN ? `, the first ${MOST_SHOWN} here` : "";
    const leftOut = counts.leftOut ? `; ${count(counts.leftOut)} more are not on the map` : "";
    this._note.textContent = subscriptions.size ? `${count(found.length)} of ${count(subscriptions.size)}${more}${leftOut}` : "Nobody subscribes yet: draw one (c, b, p), or type one (/).";
    this._list.replaceChildren(...found.slice(0, MOST_SHOWN).map(({ id, expression, told }) =>
      item("●", "subscription", id, told ? `${count(told)} told` : "", expression, false, () => this.choose({ kind: "subscription", id }))));
  }
}
