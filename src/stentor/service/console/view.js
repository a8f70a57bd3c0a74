// Where the map looks: longitude and latitude to pixels and back (Web Mercator).

export const EARTH_RADIUS = 6371008.8;
const TILE = 256;
const NORTHMOST = 85.05;
const LEAST_ZOOM = 0.3;
const MOST_ZOOM = 20;

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** Longitude as 0 … 1 from west to east. */
export function mercatorX(longitude) {
  return longitude / 360 + 0.5;
}

/** Latitude as 0 … 1 from north to south. */
export function mercatorY(latitude) {
  const angle = (clamp(latitude, -NORTHMOST, NORTHMOST) * Math.PI) / 180;
  return 0.5 - Math.asinh(Math.tan(angle)) / (2 * Math.PI);
}

/** The part of the world that a canvas of `width` × `height` CSS pixels shows. */
export class View {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.x = 0.5;
    this.y = 0.42;
    this.zoom = 1;
    this.version = 0; // counts changes, so that what is drawn from it can be kept
  }

  /** Pixels from one end of the world to the other. */
  get size() {
    return TILE * 2 ** this.zoom;
  }

  get center() {
    return this.locationAt(this.width / 2, this.height / 2);
  }

  resize(width, height) {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this._changed();
  }

  /** Pixels of a location, of the copy of the world that is nearest to the centre. */
  pixel([longitude, latitude]) {
    let dx = mercatorX(longitude) - this.x;
    dx -= Math.round(dx);
    return [
      this.width / 2 + dx * this.size,
      this.height / 2 + (mercatorY(latitude) - this.y) * this.size,
    ];
  }

  /** Pixels of a ring, whose points stay together also across the antimeridian. */
  pixels(ring) {
    const size = this.size;
    const found = new Array(ring.length);
    let before = this.x;
    for (let index = 0; index < ring.length; index += 1) {
      let x = mercatorX(ring[index][0]);
      x -= Math.round(x - before);
      before = x;
      found[index] = [
        this.width / 2 + (x - this.x) * size,
        this.height / 2 + (mercatorY(ring[index][1]) - this.y) * size,
      ];
    }
    return found;
  }

  locationAt(px, py) {
    const x = this.x + (px - this.width / 2) / this.size;
    const y = this.y + (py - this.height / 2) / this.size;
    const longitude = (x - Math.floor(x)) * 360 - 180;
    const latitude = (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI;
    return [longitude, clamp(latitude, -NORTHMOST, NORTHMOST)];
  }

  /** Metres of one pixel at a latitude, or in the middle. */
  metresPerPixel(latitude = this.center[1]) {
    return (2 * Math.PI * EARTH_RADIUS * Math.cos((latitude * Math.PI) / 180)) / this.size;
  }

  pan(dx, dy) {
    this._lookAt(this.x - dx / this.size, this.y - dy / this.size, this.zoom);
  }

  /** Zoom in by `levels` (out where negative); what is at this pixel stays there. */
  zoomBy(levels, px = this.width / 2, py = this.height / 2) {
    const zoom = clamp(this.zoom + levels, LEAST_ZOOM, MOST_ZOOM);
    const before = this.size;
    const after = TILE * 2 ** zoom;
    const dx = px - this.width / 2;
    const dy = py - this.height / 2;
    this._lookAt(this.x + dx / before - dx / after, this.y + dy / before - dy / after, zoom);
  }

  lookAt([longitude, latitude], zoom = this.zoom) {
    this._lookAt(mercatorX(longitude), mercatorY(latitude), clamp(zoom, LEAST_ZOOM, MOST_ZOOM));
  }

  /** Show all of `locations`; `inset` are pixels {left, right, top, bottom} that something covers. */
  fit(locations, inset = {}, closest = 15) {
    const { left = 40, right = 40, top = 40, bottom = 40 } = inset;
    const [west, south, east, north] = bounds(locations);
    const wide = Math.max(mercatorX(east) - mercatorX(west), 1e-9);
    const high = Math.max(mercatorY(south) - mercatorY(north), 1e-9);
    const room = [Math.max(this.width - left - right, 50), Math.max(this.height - top - bottom, 50)];
    const scale = Math.min(room[0] / wide, room[1] / high);
    const zoom = clamp(Math.log2(scale / TILE), LEAST_ZOOM, closest);
    const size = TILE * 2 ** zoom;
    const x = (mercatorX(west) + mercatorX(east)) / 2 + (right - left) / 2 / size;
    const y = (mercatorY(south) + mercatorY(north)) / 2 + (bottom - top) / 2 / size;
    this._lookAt(x, y, zoom);
  }

  _lookAt(x, y, zoom) {
    this.x = x - Math.floor(x);
    this.y = clamp(y, 0.02, 0.98);
    this.zoom = zoom;
    this._changed();
  }

  _changed() {
    this.version += 1;
  }
}

/** West, south, east, north of locations; east may pass 180 where the short way crosses it. */
export function bounds(locations) {
  let [west, east] = [Infinity, -Infinity];
  let [south, north] = [Infinity, -Infinity];
  const first = locations.length ? locations[0][0] : 0;
  for (const [longitude, latitude] of locations) {
    const x = longitude - 360 * Math.round((longitude - first) / 360);
    west = Math.min(west, x);
    east = Math.max(east, x);
    south = Math.min(south, latitude);
    north = Math.max(north, latitude);
  }
  return locations.length ? [west, south, east, north] : [-170, -56, 190, 74];
}

/** Metres between two locations, on the sphere that the language uses. */
export function distance([lon1, lat1], [lon2, lat2]) {
  const radians = Math.PI / 180;
  const a =
    Math.sin(((lat2 - lat1) * radians) / 2) ** 2 +
    Math.cos(lat1 * radians) * Math.cos(lat2 * radians) * Math.sin(((lon2 - lon1) * radians) / 2) ** 2;
  return 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** The location so many metres from another, in a direction (radians clockwise from north). */
export function destination([longitude, latitude], metres, direction) {
  const angle = metres / EARTH_RADIUS;
  const lat = (latitude * Math.PI) / 180;
  const sine = Math.sin(lat) * Math.cos(angle) + Math.cos(lat) * Math.sin(angle) * Math.cos(direction);
  const lat2 = Math.asin(clamp(sine, -1, 1));
  const turn = Math.atan2(
    Math.sin(direction) * Math.sin(angle) * Math.cos(lat),
    Math.cos(angle) - Math.sin(lat) * sine,
  );
  return [longitude + (turn * 180) / Math.PI, (lat2 * 180) / Math.PI];
}
