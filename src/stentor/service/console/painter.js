// Draws a scene: regions, subscribers (dots), events (diamonds), deliveries (sparks that fly).

import { ringsOf } from "./regions.js";
import { FLASH, GONE } from "./scene.js";

const MOST_REGIONS = 120; // more than this on the map at once are drawn only where they matter
const MOST_FLASHING = 14;
const ARRIVAL = 0.55; // share of a flash's time at which the spark arrives
const POP = 900; // milliseconds in which a new event's ring opens

/** Draw `scene` into a 2D context; `marks` says what is chosen, hovered, drawn or previewed. */
export function drawScene(context, view, scene, marks, colours, wall) {
  scene.isMoving = false;
  const dots = subscribersInSight(view, scene, wall);
  drawRegions(context, view, scene, dots, marks, colours, wall);
  drawDots(context, dots, colours);
  drawEvents(context, view, scene, marks, colours, wall);
  for (const flash of scene.flashes) drawFlash(context, view, scene, flash, colours, wall);
  drawMarks(context, view, scene, marks, colours, wall);
}

function subscribersInSight(view, scene, wall) {
  const found = [];
  for (const subscription of scene.subscriptions.values()) {
    const anchor = scene.anchorOf(subscription, wall);
    if (!anchor) continue;
    const [x, y] = view.pixel(anchor);
    const isInSight = x > -20 && y > -20 && x < view.width + 20 && y < view.height + 20;
    if (isInSight || subscription.regions.length) found.push({ subscription, x, y, isInSight });
  }
  return found;
}

function drawRegions(context, view, scene, dots, marks, colours, wall) {
  const told = new Set(scene.flashes.map((flash) => flash.subscription));
  const flashing = told.size <= MOST_FLASHING ? told : new Set();
  const crowd = Math.min(1, 24 / Math.max(1, scene.subscriptions.size)); // many lie over one another
  const drawAll = scene.subscriptions.size <= MOST_REGIONS;
  for (const { subscription } of dots) {
    const isMarked = subscription.id === marks.subscription || subscription.id === marks.hovered;
    if (!drawAll && !isMarked && !marks.told?.has(subscription.id) && !flashing.has(subscription.id)) continue;
    const at = scene.positionOf(subscription, wall);
    const isFew = drawAll || isMarked;
    const strength = isMarked ? 1 : told.has(subscription.id) ? 0.75 : 0.4 * crowd;
    for (const region of subscription.regions) {
      drawRegion(context, view, region, at, colours.subscription, isFew ? strength : 0.2, isMarked, isFew);
    }
  }
}

/** One region, filled lightly; one that is asked for with NOT has a dashed border and no filling. */
export function drawRegion(context, view, region, at, colour, strength, isBold = false, isFilled = true) {
  const rings = ringsOf(region, at).map((ring) => view.pixels(ring));
  if (!rings.length) return;
  context.beginPath();
  for (const ring of rings) {
    ring.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
  }
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.globalAlpha = 0.1 * strength;
  if (isFilled && !region.negated) context.fill("evenodd");
  context.globalAlpha = 0.25 + 0.65 * strength;
  context.lineWidth = isBold ? 2.2 : 1.2;
  context.setLineDash(region.negated ? [6, 5] : []);
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function drawDots(context, dots, colours) {
  const isCrowd = dots.length > 800;
  context.fillStyle = colours.subscription;
  context.globalAlpha = isCrowd ? 0.75 : 1;
  if (isCrowd) {
    for (const { x, y, isInSight } of dots) if (isInSight) context.fillRect(x - 1.3, y - 1.3, 2.6, 2.6);
  } else {
    context.beginPath();
    for (const { x, y, isInSight } of dots) {
      if (!isInSight) continue;
      context.moveTo(x + 3.4, y);
      context.arc(x, y, 3.4, 0, 2 * Math.PI);
    }
    context.fill();
  }
  context.globalAlpha = 1;
}

function traceDiamond(context, x, y, radius) {
  context.moveTo(x, y - radius);
  context.lineTo(x + radius, y);
  context.lineTo(x, y + radius);
  context.lineTo(x - radius, y);
  context.closePath();
}

function drawEvents(context, view, scene, marks, colours, wall) {
  const isCrowd = scene.events.size > 500;
  for (const event of scene.events.values()) {
    if (!event.location) continue;
    const [x, y] = view.pixel(event.location);
    if (x < -30 || y < -30 || x > view.width + 30 || y > view.height + 30) continue;
    const strength = scene.strengthOf(event, wall);
    const isPreviewed = marks.preview?.has(event.id);
    const radius = (isCrowd ? 3 : 5.5) + Math.min(3.5, Math.log2(1 + event.told) * 0.6);
    context.globalAlpha = 0.3 + 0.7 * strength;
    context.beginPath();
    traceDiamond(context, x, y, radius);
    context.fillStyle = colours.event;
    context.fill();
    if (!isCrowd || isPreviewed) {
      context.lineWidth = 1.4;
      context.strokeStyle = colours.water;
      context.stroke();
    }
    const age = (wall - event.born) / POP;
    if (age >= 0 && age < 1) drawPop(context, x, y, radius, age, colours);
    if (isPreviewed) drawHalo(context, x, y, radius + 5, colours.chosen, [3, 2]);
  }
  context.globalAlpha = 1;
}

function drawPop(context, x, y, radius, age, colours) {
  context.globalAlpha = (1 - age) * 0.9;
  context.beginPath();
  traceDiamond(context, x, y, radius + 22 * (1 - (1 - age) ** 2));
  context.strokeStyle = colours.event;
  context.lineWidth = 1.6;
  context.stroke();
}

function drawHalo(context, x, y, radius, colour, dash = []) {
  context.globalAlpha = 1;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.setLineDash(dash);
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.stroke();
  context.setLineDash([]);
}

/** A spark from the event to the subscriber, and a ring where it arrives; dashed where one is lost. */
function drawFlash(context, view, scene, flash, colours, wall) {
  const share = (wall - flash.born) / FLASH;
  if (share < 0 || share > 1) return;
  const event = scene.events.get(flash.event);
  const subscription = scene.subscriptions.get(flash.subscription);
  const target = subscription && scene.anchorOf(subscription, wall);
  const start = event?.location ? view.pixel(event.location) : null;
  const stop = target ? view.pixel(target) : start;
  if (!stop) return;
  const colour = GONE.has(flash.change) ? colours.lost : colours.flash;
  if (start && stop !== start) drawArc(context, start, stop, Math.min(1, share / ARRIVAL), share, colour, flash.change);
  if (share >= ARRIVAL || !start) {
    const after = start ? (share - ARRIVAL) / (1 - ARRIVAL) : share;
    context.globalAlpha = 1 - after;
    context.beginPath();
    context.arc(stop[0], stop[1], 5 + 13 * after, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = 2.2 * (1 - after) + 0.4;
    context.setLineDash(GONE.has(flash.change) ? [3, 3] : []);
    context.stroke();
    context.setLineDash([]);
  }
  context.globalAlpha = 1;
}

function drawArc(context, [x1, y1], [x2, y2], head, share, colour, change) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const bend = 0.18;
  const [cx, cy] = [(x1 + x2) / 2 + dy * bend, (y1 + y2) / 2 - dx * bend];
  const at = (t) => {
    const u = 1 - t;
    return [u * u * x1 + 2 * u * t * cx + t * t * x2, u * u * y1 + 2 * u * t * cy + t * t * y2];
  };
  const tail = Math.max(0, Math.min(1, (share - 0.12) / ARRIVAL));
  context.strokeStyle = colour;
  context.lineCap = "round";
  context.setLineDash(GONE.has(change) ? [4, 4] : []);
  const steps = 10;
  for (let step = 0; step < steps; step += 1) {
    const from = at(tail + ((head - tail) * step) / steps);
    const to = at(tail + ((head - tail) * (step + 1)) / steps);
    context.globalAlpha = ((step + 1) / steps) ** 2 * 0.95;
    context.lineWidth = 0.6 + (1.9 * (step + 1)) / steps;
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  }
  context.setLineDash([]);
  if (head < 1) {
    const [hx, hy] = at(head);
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.beginPath();
    context.arc(hx, hy, 2.6, 0, 2 * Math.PI);
    context.fill();
  }
}

/** What is chosen, the shape that is being drawn, and the cross of who steers by keys. */
function drawMarks(context, view, scene, marks, colours, wall) {
  const event = scene.events.get(marks.event);
  if (event?.location) drawHalo(context, ...view.pixel(event.location), 12, colours.chosen);
  const subscription = scene.subscriptions.get(marks.subscription);
  const anchor = subscription && scene.anchorOf(subscription, wall);
  if (anchor) drawHalo(context, ...view.pixel(anchor), 9, colours.chosen);
  const drawn = marks.drawn ? [marks.drawn] : [];
  for (const region of [...(marks.draft ?? []), ...drawn]) drawRegion(context, view, region, marks.at, colours.chosen, 1, true);
  for (const point of marks.points ?? []) {
    const [x, y] = view.pixel(point);
    context.fillStyle = colours.chosen;
    context.fillRect(x - 3, y - 3, 6, 6);
  }
  if (marks.cross) {
    const [x, y] = view.pixel(marks.cross);
    context.strokeStyle = colours.chosen;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 5 * dx, y + 5 * dy);
      context.lineTo(x + 16 * dx, y + 16 * dy);
    }
    context.stroke();
  }
}
