// What is on the map: subscriptions, events and the deliveries between them, as they are told.

import { middleOf, regionsOf } from "./regions.js";

const MOST_EVENTS = 4000;
const MOST_SUBSCRIPTIONS = 20_000;
const MOST_FLASHES = 260;
const GLIDE = 700; // milliseconds in which a dot reaches its new location
export const FLASH = 1500; // milliseconds that a delivery is seen
/** Changes by which a subscriber no longer has an event. */
export const GONE = new Set(["removed", "left"]);
const FADE = 60_000; // milliseconds that an event without an end is seen

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** A value as [longitude, latitude], however an event writes it; null where it is no point. */
export function asLocation(value) {
  if (!value || typeof value !== "object") return null;
  if (Array.isArray(value)) return value.length === 2 && value.every(isNumber) ? value : null;
  if (value.type === "Point") return asLocation(value.coordinates);
  const pair = [value.lon ?? value.longitude ?? value.x, value.lat ?? value.latitude ?? value.y];
  return pair.every(isNumber) ? pair : null;
}

/** Where an event is: its attribute `loc`, or the first that is a point. */
export function locationOf(attributes) {
  const named = asLocation(attributes.loc ?? attributes.location);
  if (named) return named;
  for (const value of Object.values(attributes)) {
    const found = asLocation(value);
    if (found) return found;
  }
  return null;
}

export class Scene {
  constructor() {
    this.subscriptions = new Map();
    this.events = new Map();
    this.flashes = [];
    this.counts = { subscriptions: 0, events: 0, deliveries: 0, leftOut: 0 };
    this.time = 0; // logical, in milliseconds; what is over by then is not shown
    this.isMoving = false; // whether a dot glides: another frame is needed
  }

  subscribe({ id, owner = "", expression, at = null, until = null }, wall) {
    const known = this.subscriptions.get(id);
    if (!known && this.subscriptions.size >= MOST_SUBSCRIPTIONS) {
      this.counts.leftOut += 1;
      return;
    }
    const regions = known?.expression === expression ? known.regions : regionsOf(expression);
    const subscription = { id, owner, expression, at, until, regions, from: null, moved: wall, told: known?.told ?? 0 };
    if (known && at && known.at) subscription.from = this.positionOf(known, wall);
    this.subscriptions.set(id, subscription);
    this.counts.subscriptions = this.subscriptions.size;
  }

  move(id, at, wall) {
    const subscription = this.subscriptions.get(id);
    if (!subscription) return;
    subscription.from = this.positionOf(subscription, wall);
    subscription.at = at;
    subscription.moved = wall;
  }

  unsubscribe(id) {
    this.subscriptions.delete(id);
    this.counts.subscriptions = this.subscriptions.size;
  }

  publish({ id, attributes, time, until = null, location = locationOf(attributes) }, wall) {
    this.events.delete(id); // so that it comes last
    this.events.set(id, { id, attributes, time, until, location, born: wall, told: 0 });
    this.counts.events += 1;
    if (this.events.size > MOST_EVENTS) this.events.delete(this.events.keys().next().value);
  }

  withdraw(id) {
    this.events.delete(id);
  }

  deliver({ event, subscription, change = "matched" }, wall) {
    this.counts.deliveries += 1;
    const subscriber = this.subscriptions.get(subscription);
    if (subscriber) subscriber.told += 1;
    const published = this.events.get(event);
    if (published) published.told += 1;
    if (wall === null || (!subscriber && !published)) return;
    // Of very many only some are shown: the fuller it is, the fewer.
    const crowding = Math.floor((3 * this.flashes.length) / MOST_FLASHES);
    if (crowding > 2 || this.counts.deliveries % [1, 4, 12][crowding]) return;
    this.flashes.push({ event, subscription, change, born: wall });
  }

  /** Forget what is over at the logical `time`, and flashes that were seen. */
  expire(time, wall) {
    this.time = time;
    for (const [id, { until }] of this.subscriptions) if (until !== null && until <= time) this.unsubscribe(id);
    for (const [id, event] of this.events) if (this.isOver(event, wall)) this.events.delete(id);
    this.flashes = this.flashes.filter(({ born }) => wall - born < FLASH);
  }

  isOver(event, wall) {
    return event.until === null ? wall - event.born > FADE : event.until <= this.time && wall - event.born > FADE / 6;
  }

  /** How much of an event is left to be seen: 1 for one that is live, then down to 0. */
  strengthOf(event, wall) {
    if (event.until !== null) return event.until > this.time ? 1 : 0.35;
    return Math.max(0, 1 - (wall - event.born) / FADE);
  }

  /** Where the subscriber is just now, gliding towards what it reported; null without a location. */
  positionOf(subscription, wall) {
    const { at, from, moved } = subscription;
    if (!at || !from) return at;
    const share = (wall - moved) / GLIDE;
    if (share >= 1) return at;
    this.isMoving = true;
    const eased = share <= 0 ? 0 : 1 - (1 - share) ** 3;
    return [from[0] + (at[0] - from[0]) * eased, from[1] + (at[1] - from[1]) * eased];
  }

  /** Where a subscription is shown: the subscriber, or else the middle of its first region. */
  anchorOf(subscription, wall) {
    const position = this.positionOf(subscription, wall);
    if (position) return position;
    const [region] = subscription.regions;
    return region ? middleOf(region, null) : null;
  }

  /** Every location there is, to fit the map to. */
  locations(wall) {
    const found = [];
    for (const event of this.events.values()) if (event.location) found.push(event.location);
    for (const subscription of this.subscriptions.values()) {
      const anchor = this.anchorOf(subscription, wall);
      if (anchor) found.push(anchor);
    }
    return found;
  }
}
