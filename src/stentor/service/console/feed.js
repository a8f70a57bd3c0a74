// What the server tells, taken into the scene and into a list of the last events and deliveries.

import { GONE } from "./scene.js";

const MOST_ENTRIES = 300;
const MOST_SUBSCRIPTIONS = 20_000;
const PAGE = 1000;
const TWICE = 4000; // milliseconds in which a delivery told by two ways flashes once

/** A time of the server (ISO text, or seconds since 1970) as milliseconds; null where there is none. */
export function moment(time) {
  if (time === null || time === undefined) return null;
  const found = typeof time === "number" ? time * 1000 : Date.parse(time);
  return Number.isNaN(found) ? null : found;
}

export class Feed {
  constructor(client, scene) {
    this.client = client;
    this.scene = scene;
    this.entries = []; // the newest last: {kind: "event" | "delivery", …}
    this.version = 0; // counts what came, for those who show it
    this.skipped = 0;
    this.isShared = false; // whether somebody else has the console's deliveries
    this._flashed = new Map();
    this._newest = 0;
    client.on("hello", () => this.load());
    client.on("events", ({ events, withdrawn = [], skipped = 0 }) => this._events(events, withdrawn, skipped));
    client.on("subscriptions", ({ changed, removed }) => this._subscriptions(changed, removed));
    client.on("delivery", (delivery) => this._delivery(delivery));
    client.on("gap", (gap) => this._add({ kind: "gap", time: Date.now(), ...gap }));
  }

  /** Everything there is: after each connection, for what was missed meanwhile. */
  async load() {
    const known = new Set();
    let after = null;
    do {
      const page = await this.client.get(`v1/subscriptions?limit=${PAGE}${after === null ? "" : `&after=${encodeURIComponent(after)}`}`);
      for (const subscription of page.subscriptions) {
        known.add(subscription.id);
        this._subscribe(subscription);
      }
      after = page.next;
    } while (after !== null && known.size < MOST_SUBSCRIPTIONS);
    for (const id of this.scene.subscriptions.keys()) if (!known.has(id)) this.scene.unsubscribe(id);
    const { events } = await this.client.get("v1/events/recent?limit=200");
    // A server that was started again counts anew.
    if ((events.at(-1)?.number ?? 0) < this._newest) this._newest = 0;
    for (const seen of events) if (seen.number > this._newest) this._see(seen, null);
    this.version += 1;
    this.loaded?.();
  }

  _events(events, withdrawn, skipped) {
    this.skipped += skipped;
    for (const id of withdrawn) this.scene.withdraw(id);
    for (const seen of events) if (seen.number > this._newest) this._see(seen, performance.now());
    this.version += 1;
  }

  /** Take in an event; `wall` is null for one of the past, which does not flash. */
  _see({ number, time, event, matched = [], matched_count: matches = matched.length }, wall) {
    this._newest = number;
    const { id, until, ...attributes } = event;
    const told = moment(time);
    const born = wall ?? performance.now() - (Date.now() - told);
    this.scene.publish({ id, attributes, time: told, until: moment(until) }, born);
    this._add({ kind: "event", id, attributes, time: told, matches });
    for (const subscription of matched) this._told(id, subscription, "matched", told, wall);
  }

  _told(event, subscription, change, time, wall) {
    const key = `${event}\n${subscription}\n${GONE.has(change)}`;
    const now = Date.now();
    if (wall !== null && now - (this._flashed.get(key) ?? 0) < TWICE) return;
    this._flashed.delete(key);
    this._flashed.set(key, now);
    if (this._flashed.size > 5000) this._flashed.delete(this._flashed.keys().next().value);
    this.scene.deliver({ event, subscription, change }, wall);
    this._add({ kind: "delivery", event, subscription, change, time });
  }

  _delivery({ subscription, change, time, event }) {
    const { id, until, ...attributes } = event;
    if (!this.scene.events.has(id) && !GONE.has(change)) {
      this.scene.publish({ id, attributes, time: moment(time), until: moment(until) }, performance.now());
    }
    this._told(id, subscription, change, moment(time), performance.now());
    this.version += 1;
  }

  _subscriptions(changed = [], removed = []) {
    for (const subscription of changed) this._subscribe(subscription);
    for (const id of removed) this.scene.unsubscribe(id);
    this.version += 1;
  }

  _subscribe({ id, owner, client, expression, at, until }) {
    this.scene.subscribe({ id, owner: owner ?? client, expression, at: at ?? null, until: moment(until) }, performance.now());
  }

  _add(entry) {
    this.entries.push(entry);
    if (this.entries.length > MOST_ENTRIES) this.entries.splice(0, this.entries.length - MOST_ENTRIES);
  }
}
