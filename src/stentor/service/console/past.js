// A pipeline's past on the map, with a slider: the page of `stentor console` and of `map.html`.

import { drawHistogram } from "./charts.js";
import { groundOf } from "./ground.js";
import { attributeList, clock, coloured, count, el, explained, find, followTheme, headline } from "./page.js";
import { Recording } from "./recording.js";
import { Stage } from "./stage.js";

const SECONDS = 120; // in which the whole past is played
const MOST_LISTED = 60;
const PLAY = "M4 2v14l12-7z";
const PAUSE = "M4 2h4v14H4zM11 2h4v14h-4z";

class Player {
  constructor(stage, recording) {
    this.stage = stage;
    this.recording = recording;
    this.time = 0;
    this.isPlaying = false;
    this.isLive = false; // whether it stays at the end while more comes
    this.chosen = null;
    this._wall = performance.now();
    this._shownAt = 0;
    this.canExplain = false;
    this.zone = undefined; // minutes east of Greenwich, where the recording knows
  }

  get speed() {
    return (this.recording.stop / (SECONDS * 1000)) * Number(find("#speed").value);
  }

  advance(wall) {
    const passed = Math.min(250, wall - this._wall);
    this._wall = wall;
    if (this.isPlaying) {
      this.time = Math.min(this.recording.stop, this.time + passed * this.speed);
      this.recording.play(this.time, wall);
      if (this.time >= this.recording.stop && !this.isLive) this.setPlaying(false);
    } else this.recording.scene.flashes = this.recording.scene.flashes.filter(({ born }) => wall - born < 1500);
    if (wall - this._shownAt > 100) this.show(wall);
  }

  setPlaying(isPlaying) {
    if (isPlaying && this.time >= this.recording.stop && !this.isLive) this.seek(0);
    this.isPlaying = isPlaying;
    const button = find("#play");
    button.setAttribute("aria-label", isPlaying ? "Pause" : "Play");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", isPlaying ? PAUSE : PLAY);
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("viewBox", "0 0 18 18");
    picture.setAttribute("aria-hidden", "true");
    picture.append(path);
    button.replaceChildren(picture);
  }

  seek(time) {
    this.time = Math.max(0, Math.min(this.recording.stop, time));
    this.recording.seek(this.time, performance.now());
    this.show(performance.now());
  }

  /** The time of day so many milliseconds after the start. */
  clock(time, seconds = true) {
    return clock(this.recording.start + time, seconds, this.zone);
  }

  show(wall) {
    this._shownAt = wall;
    const { scene, stop } = this.recording;
    find("#subscriptions").textContent = count(scene.subscriptions.size);
    find("#events").textContent = count(scene.events.size);
    find("#deliveries").textContent = count(scene.counts.deliveries);
    find("#clock").textContent = this.clock(this.time, stop < 7_200_000);
    const slider = find("#slider");
    slider.value = String(Math.round((1000 * this.time) / (stop || 1)));
    slider.setAttribute("aria-valuetext", this.clock(this.time));
    drawHistogram(find("#histogram"), this.histogram, this.time / (stop || 1));
  }

  /** Bars as wide as the page; made again when there are more rows. */
  get histogram() {
    const bars = Math.max(30, Math.round(find("#histogram").clientWidth / 7));
    const made = `${this.recording.rows.length} ${bars}`;
    if (this._made !== made) {
      this._made = made;
      this._histogram = this.recording.histogram(bars);
    }
    return this._histogram;
  }

  choose(hit) {
    this.chosen = hit;
    const { marks } = this.stage;
    marks.event = hit?.kind === "event" ? hit.id : null;
    marks.subscription = hit?.kind === "subscription" ? hit.id : null;
    marks.told = null;
    const side = find("#side");
    side.hidden = !hit;
    if (!hit) return;
    side.replaceChildren(...(hit.kind === "event" ? this.eventCard(hit.id) : this.subscriptionCard(hit.id)));
  }

  eventCard(id) {
    const deliveries = this.recording.deliveriesOfEvent(id);
    this.stage.marks.told = new Set(deliveries.slice(-40).map(({ subscription }) => subscription));
    const attributes = this.recording.attributes.get(id) ?? {};
    return [
      this.head("◆ ", headline(id, attributes)),
      el("p", { class: "quiet small" }, id),
      attributeList(attributes),
      el("h3", {}, deliveries.length ? `Who was told (${count(deliveries.length)})` : "Nobody wanted it"),
      this.deliveryList(deliveries, "subscription"),
    ];
  }

  subscriptionCard(id) {
    const deliveries = this.recording.deliveriesOfSubscription(id);
    const expression = this.recording.expressions.get(id) ?? "";
    return [
      this.head("● ", id),
      el("code", { class: "expression" }, ...coloured(expression)),
      el("h3", {}, deliveries.length ? `What it was told (${count(deliveries.length)})` : "It was told nothing"),
      this.deliveryList(deliveries, "event"),
    ];
  }

  head(mark, title) {
    const close = el("button", { type: "button", class: "bare", "aria-label": "Close", onclick: () => this.choose(null) }, "✕");
    return el("div", { class: "row spread" }, el("h2", { class: "grow" }, mark, title), close);
  }

  deliveryList(deliveries, other) {
    const marks = { matched: "⟶", added: "⟶", entered: "⟶", stayed: "⟶", removed: "⇢", left: "⇢" };
    const words = { matched: "when published", added: "came near", removed: "went away", entered: "changed", stayed: "changed", left: "changed" };
    const items = deliveries.slice(-MOST_LISTED).reverse().map((row) => {
      const title = other === "event" ? headline(row.event, this.recording.attributes.get(row.event)) : row.subscription;
      return el("li", {}, el("button", { type: "button", onclick: () => this.chooseDelivery(row, other) },
        el("span", { class: `mark ${row.change}` }, marks[row.change]),
        el("span", { class: "title" }, title),
        el("span", { class: "when" }, this.clock(row.time)),
        el("span", { class: "note" }, words[row.change])));
    });
    return el("ul", { class: "list" }, items);
  }

  /** Go to the moment of a delivery and show it; where a server can say why, it does. */
  async chooseDelivery(row, other) {
    this.seek(row.time);
    this.recording.scene.deliver(row, performance.now());
    this.choose({ kind: other, id: row[other] });
    const subscription = this.recording.scene.subscriptions.get(row.subscription);
    const attributes = this.recording.attributes.get(row.event);
    if (!this.canExplain || !subscription || !attributes) return;
    const question = { expression: subscription.expression, at: subscription.at, event: { id: row.event, ...attributes } };
    const answer = await fetch("v1/explain", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) });
    const told = await answer.json();
    if (answer.ok) find("#side").append(el("h3", {}, "Why"), explained({ ...told, subscription: row.subscription }));
  }
}

function listen(player, toggleTheme) {
  const { stage } = player;
  find("#play").addEventListener("click", () => player.setPlaying(!player.isPlaying));
  find("#theme").addEventListener("click", toggleTheme);
  find("#slider").addEventListener("input", (event) => {
    player.isLive = false;
    player.seek((Number(event.target.value) / 1000) * player.recording.stop);
  });
  stage.hands.choose = (hit) => player.choose(hit);
  stage.hands.hoverOver = (hit) => (stage.marks.hovered = hit?.id ?? null);
  stage.hands.cancel = () => player.choose(null);
  addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea, button") || event.ctrlKey || event.metaKey) return;
    if (event.key === " ") player.setPlaying(!player.isPlaying);
    else if (event.key === "t") toggleTheme();
    else if (event.key === "Escape") player.choose(null);
    else return;
    event.preventDefault();
  });
}

/** Ask the server for what has come since, once a second, for as long as the page is open. */
async function follow(player, cursor) {
  const state = find("#state");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    try {
      const answer = await fetch(`v1/recording?after=${cursor}`);
      const part = await answer.json();
      cursor = part.cursor_text;
      const wasAtEnd = player.time >= player.recording.stop;
      if (part.rows.length) player.recording.add(part);
      if (wasAtEnd && part.rows.length) {
        player.isLive = true;
        player.setPlaying(true);
      }
      state.dataset.state = "live";
      state.textContent = "following";
    } catch {
      state.dataset.state = "lost";
      state.textContent = "not reached";
    }
    state.hidden = false;
  }
}

async function loaded(id, address) {
  const inline = document.getElementById(id);
  if (inline) return JSON.parse(inline.textContent);
  const answer = await fetch(address);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error?.message ?? answer.statusText);
  return told;
}

async function main() {
  const recording = new Recording();
  const stage = new Stage(find("#map"), recording.scene);
  const toggleTheme = followTheme(() => stage.readColours());
  stage.inset = innerWidth > 760 ? { left: 60, right: 60, top: 60, bottom: 130 } : { left: 20, right: 20, top: 170, bottom: 120 };
  stage.canvas.setAttribute("role", "application");
  stage.canvas.setAttribute("aria-label", "Map: arrows move it, plus and minus zoom, Enter chooses what is in the middle");
  const [outlines, part] = await Promise.all([loaded("outlines", "outlines.geojson"), loaded("recording", "v1/recording")]);
  recording.add(part);
  stage.setGround(groundOf(outlines), part.places ?? []);
  if (part.title) find("#title").textContent = document.title = part.title;
  const player = new Player(stage, recording);
  player.zone = part.zone;
  player.canExplain = !document.getElementById("recording");
  window.stentor = { stage, player, recording };
  player.seek(recording.stop);
  stage.fit(inner(recording.scene.locations(0)));
  player.seek(player.canExplain ? recording.stop : 0);
  stage.advance = (wall) => player.advance(wall);
  listen(player, toggleTheme);
  player.setPlaying(!player.canExplain && !matchMedia("(prefers-reduced-motion: reduce)").matches);
  if (player.canExplain) follow(player, part.cursor_text);
}

/** Locations without the farthest on each side, so that a few strays do not make the rest small. */
function inner(locations) {
  if (locations.length < 50) return locations;
  const cut = Math.floor(locations.length / 100);
  const kept = [0, 1].map((axis) => {
    const sorted = locations.map((location) => location[axis]).sort((a, b) => a - b);
    return [sorted[cut], sorted[sorted.length - 1 - cut]];
  });
  return [[kept[0][0], kept[1][0]], [kept[0][1], kept[1][1]]];
}

main().catch((error) => {
  find("#title").textContent = "The page could not be shown";
  find(".legend").replaceChildren(el("li", {}, String(error.message ?? error)));
});
