// A past that is known: rows in their order, from which the scene at any moment is made.

import { Scene } from "./scene.js";

const CHANGES = ["matched", "added", "removed"];
const [SUBSCRIBE, MOVE, UNSUBSCRIBE, EVENT, MATCHED] = [0, 1, 2, 3, 4];
const LINGER = 120; // an event without an end is seen for this share of the whole time

/** A scene whose subscribers walk straight from one report to the next. */
class PastScene extends Scene {
  constructor() {
    super();
    this.tracks = new Map();
    this.linger = 60_000;
  }

  positionOf(subscription) {
    const track = this.tracks.get(subscription.id);
    if (!track?.length) return subscription.at;
    let [low, high] = [0, track.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track[middle][0] <= this.time) low = middle + 1;
      else high = middle;
    }
    const before = track[low - 1];
    const after = track[low];
    if (!before) return subscription.at;
    if (!after || after[0] === before[0]) return [before[1], before[2]];
    const share = (this.time - before[0]) / (after[0] - before[0]);
    return [before[1] + (after[1] - before[1]) * share, before[2] + (after[2] - before[2]) * share];
  }

  isOver(event) {
    return (event.until ?? event.time + this.linger) <= this.time;
  }

  strengthOf(event) {
    return event.until === null ? Math.max(0, 1 - (this.time - event.time) / this.linger) : 1;
  }
}

/** Rows of a pipeline's tables in their order; `seek` shows a moment, `play` goes on from there. */
export class Recording {
  constructor() {
    this.scene = new PastScene();
    this.rows = [];
    this.start = 0; // milliseconds since 1970
    this.stop = 0; // milliseconds after the start
    this.told = new Map(); // event → its deliveries, subscription → its deliveries
    this.expressions = new Map(); // subscription → the expression that it had last
    this.attributes = new Map(); // event → its attributes
    this._next = 0;
  }

  /**
   * Add a part: {start, ids, events, expressions, rows}, whose rows point into its lists. Tables
   * are read one after the other: what comes late takes its place by its time.
   */
  add(part) {
    if (!this.rows.length) this.start = part.start;
    const shift = part.start - this.start;
    const before = this.rows.at(-1)?.time ?? -Infinity;
    for (const row of part.rows) this._addRow(part, row, shift);
    if (part.rows.some(([, time]) => time + shift < before)) this.rows.sort((a, b) => a.time - b.time);
    this.scene.linger = Math.max(20_000, this.stop / LINGER);
  }

  _addRow({ ids, events, expressions }, [kind, seconds, ...rest], shift) {
    const time = seconds + shift;
    this.stop = Math.max(this.stop, time);
    if (kind === EVENT) {
      const [event, longitude, latitude, until, attributes] = rest;
      this.attributes.set(events[event], attributes);
      const location = longitude === null ? null : [longitude, latitude];
      this.rows.push({ kind, time, id: events[event], location, until: until === null ? null : until + shift, attributes });
    } else if (kind === MATCHED) {
      for (const subscription of rest[1]) this._addDelivery(kind, time, events[rest[0]], ids[subscription]);
    } else if (kind > MATCHED) {
      for (const event of rest[1]) this._addDelivery(kind, time, events[event], ids[rest[0]]);
    } else this._addChange(kind, time, ids[rest[0]], rest, expressions, shift);
  }

  _addDelivery(kind, time, event, subscription) {
    const row = { kind, time, event, subscription, change: CHANGES[kind - MATCHED] };
    this._remember(`e ${event}`, row);
    this._remember(`s ${subscription}`, row);
    this.rows.push(row);
  }

  _addChange(kind, time, id, rest, expressions, shift) {
    const isNew = kind === SUBSCRIBE;
    const [longitude, latitude] = isNew ? rest.slice(2, 4) : rest.slice(1, 3);
    const at = longitude === null || longitude === undefined ? null : [longitude, latitude];
    const row = { kind, time, id, at };
    if (isNew) {
      row.expression = expressions[rest[1]];
      row.until = rest[4] === null ? null : rest[4] + shift;
      this.expressions.set(id, row.expression);
    }
    if (at) {
      if (!this.scene.tracks.has(id)) this.scene.tracks.set(id, []);
      this.scene.tracks.get(id).push([time, ...at]);
    }
    this.rows.push(row);
  }

  _remember(key, row) {
    if (!this.told.has(key)) this.told.set(key, []);
    this.told.get(key).push(row);
  }

  deliveriesOfEvent(id) {
    return this.told.get(`e ${id}`) ?? [];
  }

  deliveriesOfSubscription(id) {
    return this.told.get(`s ${id}`) ?? [];
  }

  /** How many deliveries there are in each of so many equal parts of the time. */
  histogram(bins) {
    const counts = new Array(bins).fill(0);
    for (const { kind, time } of this.rows) {
      if (kind >= MATCHED) counts[Math.min(bins - 1, Math.floor((time / (this.stop || 1)) * bins))] += 1;
    }
    return counts;
  }

  /** Show the moment `time`, in milliseconds after the start; deliveries on the way do not flash. */
  seek(time, wall) {
    const { scene } = this;
    scene.subscriptions.clear();
    scene.events.clear();
    scene.flashes = [];
    Object.assign(scene.counts, { subscriptions: 0, events: 0, deliveries: 0 });
    this._next = 0;
    this._apply(time, null);
    scene.expire(time, wall);
  }

  /** Go on to `time`, later than before: what is delivered on the way flashes. */
  play(time, wall) {
    this._apply(time, wall);
    this.scene.expire(time, wall);
  }

  _apply(time, wall) {
    const { scene } = this;
    const born = wall ?? -1e9;
    for (; this._next < this.rows.length && this.rows[this._next].time <= time; this._next += 1) {
      const row = this.rows[this._next];
      scene.time = row.time;
      if (row.kind === SUBSCRIBE) scene.subscribe(row, born);
      else if (row.kind === MOVE) scene.move(row.id, row.at, born);
      else if (row.kind === UNSUBSCRIBE) scene.unsubscribe(row.id);
      else if (row.kind === EVENT) scene.publish(row, born);
      else scene.deliver(row, wall);
    }
  }
}
