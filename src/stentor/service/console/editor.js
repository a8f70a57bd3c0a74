// A new subscription: typed or drawn, tried against the last minutes, then saved; and a new event.

import { clock, coloured, count, el, find, headline } from "./page.js";
import { predicateOf, regionsOf } from "./regions.js";

const PAUSE = 350; // milliseconds without typing before it is tried
const MINUTES = 10;

export class Editor {
  constructor(app) {
    this.app = app;
    this.client = app.client;
    this.at = null;
    this.drawn = null; // the predicate that was drawn last: drawing again replaces it
    this._asked = 0;
    this._text = el("textarea", { id: "expression", spellcheck: "false", autocapitalize: "off", autocomplete: "off", rows: "4", "aria-describedby": "expression-says", oninput: () => this._typed() });
    this._under = el("pre", { "aria-hidden": "true" });
    this._says = el("p", { class: "says", id: "expression-says", role: "status" });
    this._id = el("input", { id: "subscription-id", autocomplete: "off", spellcheck: "false", maxlength: "200" });
    this._here = el("span", { class: "grow small quiet" }, "needed for here() alone");
    this._found = el("ul", { class: "list", "aria-label": "What it would have matched" });
    this._save = el("button", { type: "submit", class: "main" }, "Subscribe");
    this._text.addEventListener("scroll", () => (this._under.scrollTop = this._text.scrollTop));
    this._text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.save();
    });
    find("#page-new").append(this._form(), this._eventForm());
  }

  _form() {
    return el("form", { onsubmit: (event) => { event.preventDefault(); this.save(); } },
      el("h2", {}, "Subscribe"),
      el("label", { for: "expression" }, "What is wanted"),
      el("div", { class: "editor" }, this._under, this._text),
      this._says,
      el("label", { for: "subscription-id" }, "Its id"),
      this._id,
      el("label", {}, "Where the subscriber is"),
      el("div", { class: "row" }, this._here, el("button", { type: "button", onclick: () => this.app.draw("here") }, "Set on the map"), el("button", { type: "button", class: "bare", onclick: () => this.setHere(null) }, "clear")),
      el("div", { class: "row", "data-space": "above" }, this._save, el("button", { type: "button", onclick: () => this.clear() }, "Clear"), el("span", { class: "quiet small" }, "Ctrl + Enter saves")),
      this._found);
  }

  _eventForm() {
    this._event = el("textarea", { id: "event", spellcheck: "false", autocomplete: "off", rows: "4", class: "mono small" });
    this._event.value = '{"text": "Coffee, two for one", "price": 3}';
    this._eventSays = el("p", { class: "says", role: "status" });
    return el("form", { onsubmit: (event) => { event.preventDefault(); this.publish(); } },
      el("h3", {}, "Publish an event"),
      el("label", { for: "event" }, "As JSON; the map sets its loc"),
      this._event,
      this._eventSays,
      el("div", { class: "row" }, el("button", { type: "submit" }, "Publish"), el("button", { type: "button", onclick: () => this.app.draw("event") }, "Set its location on the map")));
  }

  get text() {
    return this._text.value;
  }

  focus() {
    this._text.focus();
  }

  /** Take in a region that was drawn: in place of the one drawn before, or as one more predicate. */
  take(region) {
    const predicate = predicateOf(region);
    const text = this.text.trim();
    if (this.drawn && text.includes(this.drawn)) this._set(text.replace(this.drawn, predicate));
    else if (!text) this._set(predicate);
    else this._set(/\bor\b/i.test(text) ? `(${text}) AND ${predicate}` : `${text} AND ${predicate}`);
    this.drawn = predicate;
    if (!this._id.value) this._id.value = this._freeId(region.kind);
  }

  edit({ id, expression, at }) {
    this._id.value = id;
    this.drawn = null;
    this.setHere(at ?? null);
    this._set(expression);
    this.focus();
  }

  clear() {
    this._id.value = "";
    this.drawn = null;
    this.setHere(null);
    this._set("");
  }

  setHere(location) {
    this.at = location;
    this._here.textContent = location ? location.map((each) => each.toFixed(5)).join(", ") : "needed for here() alone";
    if (this.text) this._typed();
  }

  _freeId(kind) {
    let number = 1;
    while (this.app.scene.subscriptions.has(`${kind}-${number}`)) number += 1;
    return `${kind}-${number}`;
  }

  _set(text) {
    this._text.value = text;
    this._typed();
  }

  _typed() {
    const { marks } = this.app.stage;
    marks.draft = regionsOf(this.text);
    marks.at = this.at;
    this._underline(null, null);
    clearTimeout(this._timer);
    const asked = (this._asked += 1);
    if (this.text.trim()) this._timer = setTimeout(() => this._try(asked), PAUSE);
    else this._show("", "", []);
  }

  _underline(start, stop) {
    this._under.replaceChildren(...coloured(this.text, start, stop), "\n");
  }

  /** What it would have matched in the last minutes; or what is wrong, underlined. */
  async _try(asked) {
    try {
      const question = { expression: this.text, minutes: MINUTES, limit: 50, ...(this.at && { at: this.at }) };
      const told = await this.client.ask("POST", "v1/match", question);
      if (asked !== this._asked) return;
      this._show("good", this._verdict(told), told.events);
    } catch (error) {
      if (asked !== this._asked) return;
      if (Number.isInteger(error.start)) this._underline(error.start, error.stop ?? error.start + 1);
      const [first] = error.message.split("\n");
      this._show("bad", error.hint ? `${first}\n${error.hint}` : first, []);
    }
  }

  _verdict({ matched, looked_at: seen, never }) {
    if (never) return "It can never match: its conditions exclude one another.";
    if (!seen) return `No events in the last ${MINUTES} minutes to try it on.`;
    return `It would have matched ${count(matched)} of the ${count(seen)} events of the last ${MINUTES} minutes.`;
  }

  _show(kind, words, events) {
    this._says.className = `says ${kind}`;
    this._says.textContent = words;
    this._text.setAttribute("aria-invalid", String(kind === "bad"));
    this.app.stage.marks.preview = new Set(events.map(({ event }) => event.id));
    this._found.replaceChildren(...events.slice(0, 12).map(({ event, time }) =>
      el("li", {}, el("button", { type: "button", onclick: () => this.app.choose({ kind: "event", id: event.id }) },
        el("span", { class: "mark event", "aria-hidden": "true" }, "◆"),
        el("span", { class: "title" }, headline(event.id, event)),
        el("span", { class: "when" }, clock(Date.parse(time)))))));
  }

  async save() {
    const id = this._id.value.trim() || this._freeId("subscription");
    try {
      const body = { expression: this.text, client: this.client.client, ...(this.at && { at: this.at }) };
      const { subscription } = await this.client.ask("PUT", `v1/subscriptions/${encodeURIComponent(id)}`, body);
      this.app.saved(subscription);
      this.clear();
    } catch (error) {
      if (Number.isInteger(error.start)) this._underline(error.start, error.stop ?? error.start + 1);
      this._show("bad", error.message.split("\n")[0], []);
    }
  }

  /** Publish what the form says, at `location` where one was set. */
  async publish(location = null) {
    let event;
    try {
      event = JSON.parse(this._event.value);
      if (!event || typeof event !== "object" || Array.isArray(event)) throw new Error("one object is wanted");
    } catch (error) {
      this._saysOfEvent("bad", `This is no JSON object: ${error.message}`);
      return;
    }
    if (location) event.loc = location.map((each) => Number(each.toFixed(6)));
    try {
      const { results, rejected } = await this.client.ask("POST", "v1/events", event);
      if (rejected?.length) throw new Error(rejected[0].error.message);
      const matched = results[0]?.matched ?? 0;
      this._saysOfEvent("good", `${results[0].id}: ${matched ? `told to ${count(matched)}` : "nobody wants it"}`);
      this.app.say(matched ? `Published: told to ${count(matched)}` : "Published: nobody wants it");
    } catch (error) {
      this._saysOfEvent("bad", error.message.split("\n")[0]);
    }
  }

  _saysOfEvent(kind, words) {
    this._eventSays.className = `says ${kind}`;
    this._eventSays.textContent = words;
  }
}
