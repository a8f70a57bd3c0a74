// The map on the page: two canvases (ground, and what moves), and the hands and keys that steer it.

import { drawGround } from "./ground.js";
import { drawScene } from "./painter.js";
import { ringsOf } from "./regions.js";
import { View } from "./view.js";

const NEAR = 14; // pixels within which something is hit
const COLOURS = [
  "water", "land", "border", "grid", "gridText", "name", "scale", "place", "placeEdge",
  "subscription", "event", "flash", "lost", "chosen",
];
const STEP = 60; // pixels that an arrow key moves the map
const CROSS_STEP = 12;

export class Stage {
  /**
   * Show `scene` in `element`. `hands` are called with what happens there: `choose(hit)`,
   * `point(location)`, `hover(location)`, `finish()`, `cancel()`.
   */
  constructor(element, scene, hands = {}) {
    this.element = element;
    this.scene = scene;
    this.hands = hands;
    this.view = new View();
    this.ground = [];
    this.tiles = null;
    this.places = [];
    this.marks = {};
    this.tool = null; // the name of the tool in hand, or null
    this.inset = {};
    this.advance = () => false; // called in every frame; true where the scene has changed
    this._pointers = new Map();
    this._groundDrawn = "";
    this.frames = 0;
    this._canvases = ["ground", "moving"].map((name) => {
      const canvas = document.createElement("canvas");
      canvas.className = `map-${name}`;
      element.append(canvas);
      return canvas;
    });
    this._contexts = this._canvases.map((canvas) => canvas.getContext("2d"));
    this._listen();
    this.readColours();
    new ResizeObserver(() => this._resize()).observe(element);
    this._resize();
    requestAnimationFrame((wall) => this._frame(wall));
  }

  /** Take the colours from the page's style: after the theme has changed. */
  readColours() {
    const style = getComputedStyle(this.element);
    this.colours = Object.fromEntries(
      COLOURS.map((name) => [name, style.getPropertyValue(`--map-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`).trim()]),
    );
    this._groundDrawn = "";
  }

  /** Show everything there is, or these locations. */
  fit(locations = this.scene.locations(performance.now())) {
    this.view.fit(locations, this.inset);
  }

  /** Whether a location is on the map and not below what covers it. */
  isInSight(location) {
    const { left = 0, right = 0, top = 0, bottom = 0 } = this.inset;
    const [x, y] = this.view.pixel(location);
    return x >= left && y >= top && x <= this.view.width - right && y <= this.view.height - bottom;
  }

  setGround(ground, places = []) {
    this.ground = ground;
    this.places = places;
    this._groundDrawn = "";
  }

  /** Draw these tiles too, or none; they call `redraw` when one has come. */
  setTiles(tiles) {
    this.tiles = tiles;
    this.redraw();
  }

  redraw() {
    this._groundDrawn = "";
  }

  _resize() {
    const { clientWidth, clientHeight } = this.element;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    for (const canvas of this._canvases) {
      canvas.width = Math.max(1, Math.round(clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    }
    for (const context of this._contexts) context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.view.resize(clientWidth, clientHeight);
    this._groundDrawn = "";
  }

  _frame(wall) {
    this.advance(wall);
    const { view, _contexts: [ground, moving] } = this;
    view.inset = { left: (this.inset.left ?? 16), bottom: (this.inset.bottom ?? 28) };
    const drawn = `${view.version} ${view.inset.left} ${view.inset.bottom}`;
    if (drawn !== this._groundDrawn) {
      drawGround(ground, view, this.ground, this.places, this.colours, this.tiles);
      this._groundDrawn = drawn;
    }
    moving.clearRect(0, 0, view.width, view.height);
    drawScene(moving, view, this.scene, this.marks, this.colours, wall);
    this.frames += 1;
    requestAnimationFrame((next) => this._frame(next));
  }

  /** What is at this pixel: {kind: "event" | "subscription", id}, or null. */
  hit(px, py) {
    const wall = performance.now();
    const nearest = { distance: NEAR, found: null };
    const compare = (location, found) => {
      const [x, y] = this.view.pixel(location);
      const distance = Math.hypot(x - px, y - py);
      if (distance <= nearest.distance) Object.assign(nearest, { distance, found });
    };
    for (const { id, location } of this.scene.events.values()) if (location) compare(location, { kind: "event", id });
    for (const subscription of this.scene.subscriptions.values()) {
      const anchor = this.scene.anchorOf(subscription, wall);
      if (anchor) compare(anchor, { kind: "subscription", id: subscription.id });
    }
    return nearest.found ?? this._regionAt(px, py, wall);
  }

  /** The subscription with the smallest region around this pixel, where regions are drawn at all. */
  _regionAt(px, py, wall) {
    let best = null;
    if (this.scene.subscriptions.size > 500) return null;
    for (const { id, regions, ...subscription } of this.scene.subscriptions.values()) {
      for (const region of regions) {
        const [ring] = ringsOf(region, this.scene.positionOf(subscription, wall)).map((each) => this.view.pixels(each));
        if (!ring || !isInside(ring, px, py)) continue;
        const size = ring.reduce((sum, [x, y], index) => sum + Math.hypot(x - ring[0][0], y - ring[0][1]) / (index + 1), 0);
        if (!best || size < best.size) best = { size, kind: "subscription", id };
      }
    }
    return best && { kind: best.kind, id: best.id };
  }

  _listen() {
    const top = this._canvases[1];
    top.tabIndex = 0;
    top.addEventListener("pointerdown", (event) => this._down(event));
    top.addEventListener("pointermove", (event) => this._move(event));
    for (const kind of ["pointerup", "pointercancel"]) top.addEventListener(kind, (event) => this._up(event));
    top.addEventListener("pointerleave", () => this.hands.hoverOver?.(null));
    top.addEventListener("dblclick", () => this.tool && this.hands.finish?.());
    top.addEventListener("wheel", (event) => this._wheel(event), { passive: false });
    top.addEventListener("keydown", (event) => this._key(event));
    top.addEventListener("blur", () => (this.marks.cross = null));
    this.canvas = top;
  }

  _pixel(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  _down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this._pointers.set(event.pointerId, this._pixel(event));
    this._start = this._pixel(event);
    this._dragged = false;
    this.marks.cross = null;
    const isShape = this.tool && this.tool !== "polygon" && this._pointers.size === 1;
    if (isShape) this.hands.point?.(this.view.locationAt(...this._start));
  }

  _move(event) {
    const [px, py] = this._pixel(event);
    const before = this._pointers.get(event.pointerId);
    if (this.tool) this.hands.hover?.(this.view.locationAt(px, py));
    if (!before) {
      if (!this.tool) this.hands.hoverOver?.(this.hit(px, py));
      return;
    }
    if (Math.hypot(px - this._start[0], py - this._start[1]) > 4) this._dragged = true;
    if (this._pointers.size === 2) this._pinch(event.pointerId, [px, py]);
    else if (this._dragged && (!this.tool || this.tool === "polygon")) this.view.pan(px - before[0], py - before[1]);
    this._pointers.set(event.pointerId, [px, py]);
  }

  /** Two fingers: zoom by how far they are apart. */
  _pinch(id, [px, py]) {
    const [ox, oy] = [...this._pointers].find(([other]) => other !== id)[1];
    const [bx, by] = this._pointers.get(id);
    const share = Math.hypot(px - ox, py - oy) / Math.max(1, Math.hypot(bx - ox, by - oy));
    this.view.zoomBy(Math.log2(share), (px + ox) / 2, (py + oy) / 2);
  }

  _up(event) {
    if (!this._pointers.delete(event.pointerId)) return;
    const pixel = this._pixel(event);
    const location = this.view.locationAt(...pixel);
    if (this.tool === "polygon" && !this._dragged) this.hands.point?.(location);
    else if (this.tool && this._dragged) this.hands.point?.(location);
    else if (!this.tool && !this._dragged) this.hands.choose?.(this.hit(...pixel), location);
  }

  _wheel(event) {
    event.preventDefault();
    const levels = Math.max(-1, Math.min(1, -event.deltaY / (event.deltaMode ? 6 : 240)));
    this.view.zoomBy(levels, ...this._pixel(event));
  }

  /** Arrows move the map, or with a tool in hand (or Shift) the cross; Enter points, Escape cancels. */
  _key(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const arrow = arrows[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrow && (this.tool || event.shiftKey)) this._moveCross(arrow, event.shiftKey && this.tool ? 5 : 1);
    else if (arrow) this.view.pan(-arrow[0] * STEP, -arrow[1] * STEP);
    else if (event.key === "+" || event.key === "=") this.view.zoomBy(0.5);
    else if (event.key === "-") this.view.zoomBy(-0.5);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter") this._enter();
    else if (event.key === "Backspace") this.hands.undo?.();
    else if (event.key === "Escape") this.hands.cancel?.();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The middle of what nothing covers. */
  middle() {
    const { left = 0, right = 0, top = 0, bottom = 0 } = this.inset;
    const { width, height } = this.view;
    return this.view.locationAt((width + left - right) / 2, (height + top - bottom) / 2);
  }

  /** Where the cross is: in the middle, until it is moved. */
  crossLocation() {
    return this.marks.cross ?? this.middle();
  }

  showCross() {
    this.marks.cross = this.crossLocation();
  }

  _moveCross([dx, dy], times) {
    const [x, y] = this.view.pixel(this.crossLocation());
    this.marks.cross = this.view.locationAt(x + dx * CROSS_STEP * times, y + dy * CROSS_STEP * times);
    this.hands.hover?.(this.marks.cross);
  }

  _enter() {
    const location = this.crossLocation();
    this.marks.cross = location;
    if (this.tool) this.hands.point?.(location, true);
    else this.hands.choose?.(this.hit(...this.view.pixel(location)), location);
  }
}

function isInside(ring, px, py) {
  let inside = false;
  for (let index = 0, before = ring.length - 1; index < ring.length; before = index, index += 1) {
    const [x1, y1] = ring[before];
    const [x2, y2] = ring[index];
    if (y1 > py !== y2 > py && px < ((x1 - x2) * (py - y2)) / (y1 - y2) + x2) inside = !inside;
  }
  return inside;
}
