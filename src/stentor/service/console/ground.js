// The ground of the map: land, borders, a grid of degrees, names and a scale.

import { mercatorX, mercatorY } from "./view.js";

const STEPS = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];
const LENGTHS = [1, 2, 5];
const MARGIN = 64;

/** GeoJSON polygons, made ready to be drawn: unit coordinates and bounds of every ring. */
export function groundOf(outlines) {
  return outlines.features.map((feature) => {
    const polygons = feature.geometry.coordinates.map((rings) => rings.map(unitRing));
    const largest = polygons.map((rings) => rings[0]).sort((a, b) => area(b) - area(a))[0];
    return { name: feature.properties.name, polygons, largest };
  });
}

function unitRing(ring) {
  const points = ring.map(([longitude, latitude]) => [mercatorX(longitude), mercatorY(latitude)]);
  const xs = points.map((point) => point[0]);
  const ys = points.map((point) => point[1]);
  return { points, box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] };
}

const area = ({ box }) => (box[2] - box[0]) * (box[3] - box[1]);

/** Draw the ground of `view` into a 2D context; `places` are [name, longitude, latitude, metres]. */
export function drawGround(context, view, ground, places, colours, tiles = null) {
  context.fillStyle = colours.water;
  context.fillRect(0, 0, view.width, view.height);
  drawLand(context, view, ground, colours);
  tiles?.draw(context, view, colours);
  drawGrid(context, view, colours);
  drawPlaces(context, view, places, colours);
  if (view.zoom < 8) drawNames(context, view, ground, colours);
  drawScale(context, view, colours);
}

/** The copies of the world that are in sight, as whole numbers to add to unit coordinates. */
function copies(view) {
  const half = view.width / 2 / view.size;
  const found = [];
  for (let copy = Math.floor(view.x - half); copy <= Math.floor(view.x + half); copy += 1) found.push(copy);
  return found;
}

function drawLand(context, view, ground, colours) {
  context.beginPath();
  for (const copy of copies(view)) {
    for (const { polygons } of ground) {
      for (const rings of polygons) for (const ring of rings) traceRing(context, view, ring, copy);
    }
  }
  context.fillStyle = colours.land;
  context.fill("evenodd");
  context.strokeStyle = colours.border;
  context.lineWidth = 0.8;
  context.lineJoin = "round";
  context.stroke();
}

function traceRing(context, view, { points, box }, copy) {
  const size = view.size;
  const left = (copy - view.x) * size + view.width / 2;
  const top = -view.y * size + view.height / 2;
  const edge = [-MARGIN, -MARGIN, view.width + MARGIN, view.height + MARGIN];
  const shown = [left + box[0] * size, top + box[1] * size, left + box[2] * size, top + box[3] * size];
  if (shown[2] < edge[0] || shown[0] > edge[2] || shown[3] < edge[1] || shown[1] > edge[3]) return;
  if (shown[2] - shown[0] + shown[3] - shown[1] < 2) return; // smaller than a pixel
  let ring = points.map(([x, y]) => [left + x * size, top + y * size]);
  if (size > 1e5) ring = clip(ring, edge); // coordinates beyond what a rasteriser can hold
  ring.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}

/** The part of a ring inside a box (Sutherland and Hodgman). */
export function clip(ring, [left, top, right, bottom]) {
  const sides = [
    [0, left, 1], [0, right, -1], [1, top, 1], [1, bottom, -1],
  ];
  for (const [axis, limit, sign] of sides) {
    const inside = (point) => sign * (point[axis] - limit) >= 0;
    const kept = [];
    ring.forEach((point, index) => {
      const before = ring[(index || ring.length) - 1];
      if (inside(point) !== inside(before)) {
        const share = (limit - before[axis]) / (point[axis] - before[axis]);
        const crossing = [before[0] + (point[0] - before[0]) * share, before[1] + (point[1] - before[1]) * share];
        kept.push(crossing);
      }
      if (inside(point)) kept.push(point);
    });
    ring = kept;
  }
  return ring;
}

function drawGrid(context, view, colours) {
  const degrees = (110 / view.size) * 360;
  const step = STEPS.findLast((each) => each >= degrees) ?? STEPS[0];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const label = (value, letters) =>
    `${Math.abs(value).toFixed(decimals)}°${value === 0 ? "" : letters[value > 0 ? 0 : 1]}`;
  context.strokeStyle = colours.grid;
  context.fillStyle = colours.gridText;
  context.lineWidth = 1;
  context.font = "10px system-ui, sans-serif";
  context.beginPath();
  const half = (view.width / 2 / view.size) * 360;
  const middle = (view.x - 0.5) * 360;
  for (let each = Math.ceil((middle - half) / step); each * step <= middle + half; each += 1) {
    const x = Math.round(view.width / 2 + ((each * step - middle) / 360) * view.size) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, view.height);
    const longitude = each * step - 360 * Math.round((each * step) / 360);
    context.fillText(label(longitude, "EW"), x + 3, view.height - (view.inset?.bottom ?? 28) + 22);
  }
  const south = view.locationAt(0, view.height)[1];
  const north = view.locationAt(0, 0)[1];
  for (let each = Math.ceil(south / step); each * step <= north; each += 1) {
    const y = Math.round(view.pixel([0, each * step])[1]) + 0.5;
    context.moveTo(0, y);
    context.lineTo(view.width, y);
    if (y > 90 && y < view.height - (view.inset?.bottom ?? 0) - 30) context.fillText(label(each * step, "NS"), 4, y - 3);
  }
  context.stroke();
}

function drawNames(context, view, ground, colours) {
  context.textAlign = "center";
  context.fillStyle = colours.name;
  context.font = "600 11px system-ui, sans-serif";
  const taken = [];
  for (const copy of copies(view)) {
    for (const { name, largest } of [...ground].sort((a, b) => area(b.largest) - area(a.largest))) {
      const [west, north, east, south] = largest.box;
      if ((east - west) * view.size < 9 * name.length) continue;
      const x = view.width / 2 + ((west + east) / 2 + copy - view.x) * view.size;
      const y = view.height / 2 + ((north + south) / 2 - view.y) * view.size;
      if (x < 0 || x > view.width || y < 0 || y > view.height) continue;
      if (taken.some(([tx, ty]) => Math.abs(tx - x) < 90 && Math.abs(ty - y) < 18)) continue;
      taken.push([x, y]);
      context.fillText(name.toUpperCase(), x, y);
    }
  }
  context.textAlign = "left";
}

function drawPlaces(context, view, places, colours) {
  context.textAlign = "center";
  for (const [name, longitude, latitude, metres] of places) {
    const [x, y] = view.pixel([longitude, latitude]);
    const radius = metres / view.metresPerPixel(latitude);
    if (radius < 6 || x < -radius || x > view.width + radius || y < -radius || y > view.height + radius) continue;
    const glow = context.createRadialGradient(x, y, 0, x, y, radius);
    glow.addColorStop(0, colours.place);
    glow.addColorStop(1, colours.placeEdge);
    context.fillStyle = glow;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
    if (radius < 24) continue;
    context.fillStyle = colours.name;
    context.font = `600 ${radius > 60 ? 12 : 10}px system-ui, sans-serif`;
    context.fillText(name, x, y - radius * 0.55);
  }
  context.textAlign = "left";
}

function drawScale(context, view, colours) {
  const most = 110 * view.metresPerPixel();
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = power * LENGTHS.findLast((each) => each * power <= most);
  const width = metres / view.metresPerPixel();
  const [x, y] = [view.inset?.left ?? 16, view.height - (view.inset?.bottom ?? 28)];
  context.strokeStyle = colours.scale;
  context.fillStyle = colours.scale;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x, y - 5);
  context.lineTo(x, y);
  context.lineTo(x + width, y);
  context.lineTo(x + width, y - 5);
  context.stroke();
  context.font = "11px system-ui, sans-serif";
  context.fillText(metres >= 1000 ? `${metres / 1000} km` : `${metres} m`, x + 5, y - 5);
}
