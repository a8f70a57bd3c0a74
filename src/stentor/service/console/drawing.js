// Drawing on the map: a circle, a box, a polygon or a point, by hand or by keys.

import { distance } from "./view.js";

const CLOSE = 12; // pixels within which a polygon's first point closes it
const ADVICE = {
  circle: ["Press where the middle is and drag, or click twice", "Arrows move the cross, Enter sets the middle, then the border"],
  box: ["Press at a corner and drag to the opposite one, or click both", "Arrows move the cross, Enter sets a corner, then the opposite one"],
  polygon: ["Click corner after corner; the first one, or a double click, closes it", "Arrows move the cross, Enter sets a corner, Enter twice closes it, Backspace takes one back"],
  event: ["Click where the event is", "Arrows move the cross, Enter sets it there"],
  here: ["Click where the subscriber is", "Arrows move the cross, Enter sets it there"],
};

export class Drawing {
  /** `done(kind, region or location)` is called when something is drawn, `changed()` at every step. */
  constructor(stage, done, changed) {
    this.stage = stage;
    this.done = done;
    this.changed = changed;
    this.kind = null;
    this.points = [];
  }

  get advice() {
    return this.kind ? ADVICE[this.kind] : null;
  }

  start(kind) {
    this.kind = kind;
    this.points = [];
    this.stage.tool = kind;
    this._show(null);
  }

  cancel() {
    this.start(null);
    this.stage.marks.points = null;
  }

  undo() {
    this.points.pop();
    this._show(null);
  }

  /** A point was set there. */
  point(location) {
    if (this.kind === "event" || this.kind === "here") this._end(location);
    else if (this.kind === "polygon") this._corner(location);
    else if (this.points.length && this._isApart(location)) this._end(this._region(location));
    else if (!this.points.length) this.points.push(location);
    if (this.kind) this._show(location);
  }

  hover(location) {
    if (this.points.length) this._show(location);
  }

  finish() {
    if (this.kind === "polygon" && this.points.length >= 3) this._end(this._region(null));
  }

  _corner(location) {
    const isLast = this.points.length && !this._isApart(location, this.points.at(-1));
    const isFirst = this.points.length >= 3 && !this._isApart(location, this.points[0]);
    if (isFirst || isLast) this.finish();
    else this.points.push(location);
  }

  _isApart(location, other = this.points[0]) {
    const [x1, y1] = this.stage.view.pixel(location);
    const [x2, y2] = this.stage.view.pixel(other);
    return Math.hypot(x1 - x2, y1 - y2) > (this.kind === "polygon" ? CLOSE / 2 : 3);
  }

  /** What is drawn so far, where `location` is the last point. */
  _region(location) {
    const [first] = this.points;
    if (this.kind === "circle") return { kind: "circle", centre: first, radius: distance(first, location), here: false };
    if (this.kind === "box") {
      const isTurned = this.stage.view.pixel(location)[0] < this.stage.view.pixel(first)[0];
      const [west, east] = isTurned ? [location[0], first[0]] : [first[0], location[0]];
      return { kind: "box", west, east, south: Math.min(first[1], location[1]), north: Math.max(first[1], location[1]) };
    }
    const corners = location ? [...this.points, location] : this.points;
    return { kind: "polygon", rings: [[...corners, corners[0]]] };
  }

  _show(location) {
    const { marks } = this.stage;
    marks.points = this.points;
    const isShape = this.points.length && (location || this.points.length > 2);
    marks.drawn = isShape ? this._region(location) : null;
    this.changed();
  }

  _end(found) {
    const { kind } = this;
    this.cancel();
    this.done(kind, found);
  }
}
