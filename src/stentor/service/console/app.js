// The console: a live map of one server.

import { Client } from "./client.js";
import { Details } from "./details.js";
import { Drawing } from "./drawing.js";
import { Editor } from "./editor.js";
import { Feed } from "./feed.js";
import { groundOf } from "./ground.js";
import { Tiles } from "./tiles.js";
import { Brokers, Health } from "./health.js";
import { ActivityList, SubscriptionList } from "./lists.js";
import { el, find, followTheme } from "./page.js";
import { Scene } from "./scene.js";
import { Stage } from "./stage.js";

const WATCHED = { events: true, subscriptions: true, stats: 1.0 };
const STATES = { live: "live", connecting: "connecting", lost: "connection lost, trying again", closed: "closed", "taken over": "watching only: another window has the deliveries", unauthorised: "a key is needed", forbidden: "not allowed" };
const TABS = ["activity", "subscriptions", "new", "health", "brokers"];
const TOOLS = { c: "circle", b: "box", p: "polygon", e: "event" };

class App {
  constructor() {
    this.scene = new Scene();
    this.stage = new Stage(find("#map"), this.scene);
    this.client = new Client({ client: "console", key: sessionStorage.getItem("stentor.key"), watch: WATCHED });
    this.feed = new Feed(this.client, this.scene);
    this.drawing = new Drawing(this.stage, (kind, found) => this.drawn(kind, found), () => this.advise());
    this.details = new Details(this);
    this.editor = new Editor(this);
    this.health = new Health();
    this.brokers = new Brokers(this.client);
    const choose = (hit) => this.choose(hit, { look: true });
    this.activity = new ActivityList(this.feed, choose);
    this.subscriptions = new SubscriptionList(this.feed, choose);
    this.toggleTheme = followTheme(() => {
      this.stage.readColours();
      this.health.show();
      this.brokers.show();
    });
    this.tab = "activity";
    this._prepareStage();
    this.client.on("hello", ({ map }) => this._openTiles(map));
    this._listen();
    this._connect();
  }

  async start() {
    const outlines = await (await fetch("outlines.geojson")).json();
    this.stage.setGround(groundOf(outlines));
  }

  /** Draw the map that the server has, if it has one of its own. */
  async _openTiles(map) {
    if (!map || this.stage.tiles) return;
    const tiles = new Tiles(map, () => this.stage.redraw());
    this.stage.tiles = tiles;
    this.stage.setTiles((await tiles.open()) ? tiles : null);
  }

  _prepareStage() {
    const { stage } = this;
    const measure = () => (stage.inset = innerWidth > 760 ? { left: 76, right: 420, top: 100, bottom: 40 } : { left: 30, right: 30, top: 130, bottom: 30 });
    addEventListener("resize", measure);
    measure();
    stage.canvas.setAttribute("role", "application");
    stage.canvas.setAttribute("aria-label", "Map. Arrows move it, plus and minus zoom, 0 shows everything. Shift and arrows move a cross, Enter chooses what is there.");
    Object.assign(stage.hands, {
      choose: (hit) => this.choose(hit),
      point: (location) => this.drawing.point(location),
      hover: (location) => this.drawing.hover(location),
      hoverOver: (hit) => (stage.marks.hovered = hit?.id ?? null),
      finish: () => this.drawing.finish(),
      undo: () => this.drawing.undo(),
      cancel: () => this.cancel(),
    });
    let shown = 0;
    stage.advance = (wall) => {
      if (wall - shown < 250) return;
      shown = wall;
      this.scene.expire(Date.now(), wall);
      if (this.tab === "activity") this.activity.show();
      if (this.tab === "subscriptions") this.subscriptions.show();
    };
  }

  _connect() {
    const { client } = this;
    client.on("state", (state) => this._state(state));
    client.on("stats", (stats) => this.health.take(stats));
    this.feed.loaded = () => {
      if (this._hasFitted) return;
      this._hasFitted = true;
      if (this.scene.locations(performance.now()).length) this.stage.fit();
    };
    client.connect();
    setInterval(() => this.brokers.show(), 2000);
  }

  _state(state) {
    const element = find("#state");
    element.dataset.state = { live: "live", lost: "lost", "taken over": "live" }[state] ?? "waiting";
    find("#state-words").textContent = STATES[state] ?? state;
    element.title = STATES[state] ?? state;
    if (state === "unauthorised" || state === "forbidden") this._askForKey(state);
    if (state === "taken over") {
      this.client.deliveries = false; // this window goes on watching
      this.client.connect();
    }
  }

  _askForKey(state) {
    const dialog = find("#key-dialog");
    dialog.querySelector(".says").textContent = state === "forbidden" ? "This key may not watch." : "";
    dialog.onclose = () => {
      this.client.key = find("#key").value.trim() || null;
      if (this.client.key) sessionStorage.setItem("stentor.key", this.client.key);
      this.client.connect();
    };
    if (!dialog.open) dialog.showModal();
  }

  choose(hit, options) {
    this.details.choose(hit, options);
  }

  /** Take a tool in hand, or put it down where it is in hand already. */
  draw(kind) {
    const isSame = this.drawing.kind === kind;
    this.drawing.cancel();
    if (isSame || !kind) return this.advise();
    this.drawing.start(kind);
    this.stage.canvas.focus({ preventScroll: true });
    return this.advise();
  }

  advise() {
    const { kind, advice } = this.drawing;
    for (const button of document.querySelectorAll("[data-tool]")) button.setAttribute("aria-pressed", String(button.dataset.tool === kind));
    find("#map").classList.toggle("drawing", Boolean(kind));
    const element = find("#advice");
    element.hidden = !advice;
    if (advice) element.replaceChildren(el("div", {}, advice[0]), el("div", { class: "quiet small" }, advice[1]));
    if (kind && document.activeElement === this.stage.canvas && this._byKey) this.stage.showCross();
  }

  drawn(kind, found) {
    this.advise();
    this.stage.marks.drawn = null;
    if (kind === "event") {
      this.editor.publish(found);
      return;
    }
    this.show("new");
    if (kind === "here") this.editor.setHere(found);
    else this.editor.take(found);
    this.editor.focus();
  }

  edit(subscription) {
    this.show("new");
    this.editor.edit(subscription);
  }

  saved({ id, expression, at, until }) {
    this.scene.subscribe({ id, expression, at: at ?? null, until: until ? Date.parse(until) : null }, performance.now());
    this.feed.version += 1;
    this.show("subscriptions");
    this.choose({ kind: "subscription", id });
    this.say(`${id} is subscribed`);
  }

  cancel() {
    if (this.drawing.kind) this.draw(null);
    else this.choose(null);
    this.stage.marks.drawn = null;
  }

  show(tab, isFocused = false) {
    this.tab = tab;
    for (const name of TABS) {
      const button = find(`#tab-${name}`);
      button.setAttribute("aria-selected", String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
      find(`#page-${name}`).hidden = name !== tab;
      if (name === tab && isFocused) button.focus();
    }
    this.activity.show(true);
    this.subscriptions.show(true);
    this.health.show();
    this.brokers.show();
  }

  say(words) {
    const toast = find("#toast");
    toast.textContent = words;
    toast.hidden = false;
    clearTimeout(this._toast);
    this._toast = setTimeout(() => (toast.hidden = true), 3500);
  }

  _listen() {
    for (const button of document.querySelectorAll("[data-tool]")) {
      button.addEventListener("click", (event) => {
        this._byKey = event.detail === 0; // pressed by a key
        this.draw(button.dataset.tool);
      });
    }
    const looks = { in: () => this.stage.view.zoomBy(1), out: () => this.stage.view.zoomBy(-1), all: () => this.stage.fit() };
    for (const button of document.querySelectorAll("[data-look]")) button.addEventListener("click", looks[button.dataset.look]);
    for (const name of TABS) find(`#tab-${name}`).addEventListener("click", () => this.show(name));
    find("#tabs").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) this.show(TABS[(TABS.indexOf(this.tab) + step + TABS.length) % TABS.length], true);
    });
    find("#theme").addEventListener("click", () => this.toggleTheme());
    find("#help").addEventListener("click", () => find("#keys").showModal());
    addEventListener("keydown", (event) => this._key(event));
    addEventListener("pointerdown", () => (this._byKey = false), true);
  }

  _key(event) {
    if (event.key === "Escape" && !find("dialog[open]")) {
      this.cancel();
      if (event.target.matches("input, textarea")) event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select") || find("dialog[open]")) return;
    const actions = {
      "/": () => { this.show("new"); this.editor.focus(); },
      "?": () => find("#keys").showModal(),
      m: () => this.stage.canvas.focus(),
      t: () => this.toggleTheme(),
    };
    if (TOOLS[event.key]) {
      this._byKey = true;
      this.draw(TOOLS[event.key]);
    } else if (TABS[Number(event.key) - 1]) this.show(TABS[Number(event.key) - 1], true);
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  }
}

const app = new App();
window.stentor = app; // for whoever looks at it from the browser's own console
app.start();
