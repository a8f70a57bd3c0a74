// What is chosen: a delivery and why, an event and who wants it and who not, a subscription.

import { attributeList, clock, coloured, count, el, explained, find, headline } from "./page.js";

const MOST_LISTED = 40;

export class Details {
  constructor(app) {
    this.app = app;
    this.client = app.client;
    this.scene = app.scene;
    this.chosen = null;
    this._asked = 0;
  }

  /** Show what is chosen; null shows nothing. */
  async choose(hit, { look = false } = {}) {
    this.chosen = hit;
    const asked = (this._asked += 1);
    const { marks } = this.app.stage;
    marks.event = hit?.kind === "event" ? hit.id : (hit?.event ?? null);
    marks.subscription = hit?.kind === "subscription" ? hit.id : (hit?.subscription ?? null);
    marks.told = null;
    const detail = find("#detail");
    detail.hidden = !hit;
    if (!hit) return;
    if (look) this._look(hit);
    detail.replaceChildren(...this._head(hit), el("p", { class: "quiet small" }, "Asking …"));
    try {
      const parts = await this[`_${hit.kind}`](hit);
      if (asked === this._asked) detail.replaceChildren(...this._head(hit), ...parts.filter(Boolean));
    } catch (error) {
      if (asked === this._asked) detail.replaceChildren(...this._head(hit), el("p", { class: "says bad" }, error.message));
    }
  }

  /** Bring what was chosen in a list into sight. */
  _look({ kind, id, event, subscription }) {
    const wall = performance.now();
    const published = this.scene.events.get(kind === "event" ? id : event);
    const subscriber = this.scene.subscriptions.get(kind === "subscription" ? id : subscription);
    const locations = [published?.location, subscriber && this.scene.anchorOf(subscriber, wall)].filter(Boolean);
    if (!locations.length) return;
    const isSeen = locations.every((location) => this.app.stage.isInSight(location));
    if (!isSeen) this.app.stage.view.fit(locations, this.app.stage.inset, Math.max(this.app.stage.view.zoom, 12));
  }

  _head(hit) {
    const titles = {
      event: () => `◆ ${headline(hit.id, this.scene.events.get(hit.id)?.attributes)}`,
      subscription: () => `● ${hit.id}`,
      delivery: () => `⟶ ${hit.subscription}`,
    };
    const close = el("button", { type: "button", class: "bare", "aria-label": "Close", onclick: () => this.choose(null) }, "✕");
    return [el("div", { class: "head" }, el("h2", {}, titles[hit.kind]()), close)];
  }

  async _delivery({ event, subscription }) {
    const told = await this.client.ask("POST", "v1/explain", { subscription, event });
    return [
      el("p", { class: "quiet small" }, headline(event, this.scene.events.get(event)?.attributes)),
      explained(told),
      el("div", { class: "row" }, this._link({ kind: "event", id: event }, "The event"), this._link({ kind: "subscription", id: subscription }, "The subscription")),
    ];
  }

  async _event({ id }) {
    const [{ event, live }, told] = await Promise.all([
      this.client.get(`v1/events/${encodeURIComponent(id)}`),
      this.client.ask("POST", "v1/why-not", { event: id }),
    ]);
    this.app.stage.marks.told = new Set(told.matched.slice(0, MOST_LISTED));
    const { until } = event;
    return [
      el("p", { class: "quiet small" }, `${id} · ${live ? (until ? `live until ${clock(Date.parse(until))}` : "live") : "no longer live"}`),
      attributeList(event),
      el("h3", {}, told.matched.length ? `Who wants it (${count(told.matched.length)})` : "Nobody wants it"),
      this._people(id, told.matched.map((subscription) => ({ subscription, note: "" }))),
      told.rejections.length ? el("h3", {}, `And why not those (${count(told.counts.reduce((sum, each) => sum + each.count, 0))})`) : null,
      told.counts.length ? el("ul", { class: "findings" }, told.counts.slice(0, 6).map(({ attribute, reason, count: many }) =>
        el("li", {}, el("span", { class: "no" }, "✗"), el("span", {}, `${count(many)} × `, el("code", {}, attribute ?? "–"), ` ${reason}`)))) : null,
      this._people(id, told.rejections.map(({ subscription, attribute, reason }) => ({ subscription, note: `${attribute ?? ""}: ${reason}` })), "removed"),
    ];
  }

  async _subscription({ id }) {
    const { subscription } = await this.client.get(`v1/subscriptions/${encodeURIComponent(id)}`);
    const { expression, at, until, client } = subscription;
    const words = [at ? `at ${at.map((each) => each.toFixed(4)).join(", ")}` : null, until ? `until ${clock(Date.parse(until))}` : null, `client ${client}`];
    return [
      el("code", { class: "expression editor-colours" }, ...coloured(expression)),
      el("p", { class: "quiet small" }, words.filter(Boolean).join(" · ")),
      el("div", { class: "row" },
        el("button", { type: "button", onclick: () => this.app.edit(subscription) }, "Change"),
        el("button", { type: "button", onclick: () => this._end(id) }, "End")),
    ];
  }

  async _end(id) {
    await this.client.ask("DELETE", `v1/subscriptions/${encodeURIComponent(id)}`);
    this.scene.unsubscribe(id);
    this.choose(null);
    this.app.say(`${id} has ended`);
  }

  _people(event, people, kind = "subscription") {
    return el("ul", { class: "list" }, people.slice(0, MOST_LISTED).map(({ subscription, note }) =>
      el("li", {}, el("button", { type: "button", onclick: () => this.choose({ kind: "delivery", event, subscription }) },
        el("span", { class: `mark ${kind}`, "aria-hidden": "true" }, kind === "removed" ? "○" : "●"),
        el("span", { class: "title" }, subscription),
        el("span", { class: "when" }, "why"),
        note ? el("span", { class: "note" }, note) : null))));
  }

  _link(hit, words) {
    return el("button", { type: "button", class: "bare small", onclick: () => this.choose(hit, { look: true }) }, words);
  }
}
