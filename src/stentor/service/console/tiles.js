// The user's own map below everything: vector tiles of a `.pmtiles` file, read by ranges and drawn on the canvas.

const TILE_PIXELS = 512; // on the screen, about
const MOST_KEPT = 160;
const LEAST_BYTES = 16384; // of the first request: header and root directory
const HILBERT_LAST = 26;

/** How layers of common schemes (Protomaps, OpenMapTiles) are drawn; others as thin lines. */
const WATER = /water|ocean|river|lake/;
const GREEN = /park|wood|forest|landuse|landcover|natural/;
const ROAD = /road|street|transport|highway|rail/;
const BUILDING = /building/;
const BORDER = /bound|admin/;
const NAMED = /place|label|poi/;

/** A `.pmtiles` file (version 3) of vector tiles, at `url`, whose server takes ranges. */
export class Tiles {
  constructor(url, onChange) {
    this.url = url;
    this._onChange = onChange;
    this._tiles = new Map(); // "z/x/y" → features, null while it comes, false where there is none
    this._directories = new Map();
    this.header = null;
  }

  /** Whether there is such a file, and it can be read. */
  async open() {
    const bytes = await this._range(0, LEAST_BYTES);
    if (!bytes || bytes.length < 127 || text(bytes, 0, 7) !== "PMTiles" || bytes[7] !== 3) return false;
    const at = new DataView(bytes.buffer, bytes.byteOffset);
    const long = (offset) => Number(at.getBigUint64(offset, true));
    this.header = {
      root: [long(8), long(16)], leaves: long(40), data: long(56),
      compression: bytes[97], tileCompression: bytes[98], isVector: bytes[99] === 1, least: bytes[100], most: bytes[101],
    };
    return this.header.isVector;
  }

  async _range(start, length) {
    const answer = await fetch(this.url, { headers: { Range: `bytes=${start}-${start + length - 1}` } });
    return answer.ok ? new Uint8Array(await answer.arrayBuffer()) : null;
  }

  async _directory(start, length) {
    const key = `${start}`;
    if (!this._directories.has(key)) {
      const load = async () => entriesOf(await unpacked(await this._range(start, length), this.header.compression));
      this._directories.set(key, load());
    }
    return this._directories.get(key);
  }

  async _features(zoom, x, y) {
    const id = hilbert(zoom, x, y);
    let [start, length] = this.header.root;
    for (let depth = 0; depth < 4; depth += 1) {
      const entry = found(await this._directory(start, length), id);
      if (!entry) return false;
      if (entry.run > 0) {
        const bytes = await this._range(this.header.data + entry.offset, entry.length);
        return layersOf(await unpacked(bytes, this.header.tileCompression));
      }
      [start, length] = [this.header.leaves + entry.offset, entry.length];
    }
    return false;
  }

  _tile(zoom, x, y) {
    const key = `${zoom}/${x}/${y}`;
    if (!this._tiles.has(key)) {
      this._tiles.set(key, null);
      if (this._tiles.size > MOST_KEPT) this._tiles.delete(this._tiles.keys().next().value);
      this._features(zoom, x, y)
        .catch(() => false)
        .then((layers) => {
          this._tiles.set(key, layers);
          this._onChange();
        });
    }
    return this._tiles.get(key);
  }

  /** Draw the tiles that `view` shows, those of less detail until the others have come. */
  draw(context, view, colours) {
    if (!this.header) return;
    const zoom = Math.max(this.header.least, Math.min(this.header.most, Math.floor(Math.log2(view.size / TILE_PIXELS) + 0.5)));
    const count = 2 ** zoom;
    const pixels = view.size / count;
    const [left, top] = [view.width / 2 - view.x * view.size, view.height / 2 - view.y * view.size];
    for (let y = Math.max(0, Math.floor(-top / pixels)); y < count && top + y * pixels < view.height; y += 1) {
      for (let column = Math.floor(-left / pixels); left + column * pixels < view.width; column += 1) {
        this._drawTile(context, zoom, ((column % count) + count) % count, y, [left + column * pixels, top + y * pixels, pixels], colours);
      }
    }
  }

  _drawTile(context, zoom, x, y, [left, top, pixels], colours) {
    let layers = this._tile(zoom, x, y);
    let [scale, dx, dy] = [1, 0, 0];
    for (let up = 1; !layers && layers !== false && zoom - up >= this.header.least && up < 5; up += 1) {
      layers = this._tiles.get(`${zoom - up}/${x >> up}/${y >> up}`);
      [scale, dx, dy] = [2 ** up, (x % 2 ** up) * pixels, (y % 2 ** up) * pixels];
    }
    if (!layers) return;
    context.save();
    context.beginPath();
    context.rect(left, top, pixels, pixels);
    context.clip();
    const place = { left: left - dx, top: top - dy, pixels: pixels * scale };
    for (const layer of layers) drawLayer(context, layer, place, colours);
    context.restore();
    if (scale === 1) for (const layer of layers) if (NAMED.test(layer.name)) drawLabels(context, layer, place, colours);
  }
}

function drawLayer(context, { name, extent, features }, { left, top, pixels }, colours) {
  const factor = pixels / extent;
  context.lineJoin = "round";
  for (const isArea of [true, false]) {
    context.beginPath();
    let drawn = 0;
    for (const { kind, parts } of features) {
      if (kind === 1 || (kind === 3) !== isArea) continue;
      drawn += 1;
      for (const part of parts) {
        for (let at = 0; at < part.length; at += 2) {
          const [px, py] = [left + part[at] * factor, top + part[at + 1] * factor];
          if (at) context.lineTo(px, py);
          else context.moveTo(px, py);
        }
        if (isArea) context.closePath();
      }
    }
    if (!drawn) continue;
    if (isArea) {
      if (BORDER.test(name) || name === "earth" || NAMED.test(name)) continue;
      context.globalAlpha = WATER.test(name) ? 1 : BUILDING.test(name) ? 0.5 : GREEN.test(name) ? 0.25 : 0.15;
      context.fillStyle = WATER.test(name) ? colours.water : colours.border;
      context.fill("evenodd");
    } else {
      context.globalAlpha = ROAD.test(name) ? 0.9 : 0.6;
      context.strokeStyle = WATER.test(name) ? colours.water : colours.border;
      context.lineWidth = ROAD.test(name) ? 1.4 : 0.8;
      context.setLineDash(BORDER.test(name) ? [4, 3] : []);
      context.stroke();
      context.setLineDash([]);
    }
    context.globalAlpha = 1;
  }
}

function drawLabels(context, { extent, features }, { left, top, pixels }, colours) {
  context.fillStyle = colours.name;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  for (const { kind, parts, name } of features.slice(0, 30)) {
    if (kind === 1 && name) context.fillText(name, left + (parts[0][0] / extent) * pixels, top + (parts[0][1] / extent) * pixels);
  }
  context.textAlign = "left";
}

// The format.

const text = (bytes, start, stop) => new TextDecoder().decode(bytes.subarray(start, stop));

/** Bytes as they were before compression: 1 none, 2 gzip. */
async function unpacked(bytes, compression) {
  if (compression <= 1) return bytes;
  if (compression !== 2) throw new Error("only gzip is read");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  varint() {
    let [value, factor] = [0, 1];
    for (let count = 0; count < 10; count += 1) {
      const byte = this.bytes[this.at];
      this.at += 1;
      value += (byte & 127) * factor;
      if (!(byte & 128)) return value;
      factor *= 128;
    }
    throw new Error("no number");
  }

  /** Calls `each(field, reader)` for every field; what it does not read is passed over. */
  fields(each) {
    while (this.at < this.bytes.length) {
      const tag = this.varint();
      const [field, wire] = [Math.floor(tag / 8), tag % 8];
      if (wire === 0) each(field, this.varint());
      else if (wire === 2) {
        const length = this.varint();
        each(field, this.bytes.subarray(this.at, this.at + length));
        this.at += length;
      } else this.at += wire === 1 ? 8 : 4;
    }
  }
}

/** The entries of a directory: ids, lengths and offsets in columns. */
function entriesOf(bytes) {
  const reader = new Reader(bytes);
  const entries = Array.from({ length: reader.varint() }, () => ({}));
  let id = 0;
  for (const entry of entries) entry.id = id += reader.varint();
  for (const entry of entries) entry.run = reader.varint();
  for (const entry of entries) entry.length = reader.varint();
  entries.forEach((entry, index) => {
    const offset = reader.varint();
    entry.offset = offset ? offset - 1 : entries[index - 1].offset + entries[index - 1].length;
  });
  return entries;
}

function found(entries, id) {
  const entry = entries.findLast((each) => each.id <= id);
  return entry && (entry.run === 0 || id < entry.id + entry.run) ? entry : null;
}

/** The number of a tile on the curve, all smaller zooms first. */
function hilbert(zoom, column, row) {
  if (zoom > HILBERT_LAST) throw new Error("no such zoom");
  let [x, y, number] = [column, row, (4 ** zoom - 1) / 3];
  for (let side = 2 ** zoom / 2; side >= 1; side /= 2) {
    const [right, below] = [x & side ? 1 : 0, y & side ? 1 : 0];
    number += side * side * ((3 * right) ^ below);
    if (!below) {
      if (right) [x, y] = [side - 1 - (x & (side - 1)), side - 1 - (y & (side - 1))];
      [x, y] = [y, x];
    }
  }
  return number;
}

/** The layers of a vector tile: names, extents, and features as lists of coordinates. */
function layersOf(bytes) {
  const layers = [];
  new Reader(bytes).fields((field, part) => {
    if (field === 3) layers.push(layerOf(part));
  });
  return layers;
}

function layerOf(bytes) {
  const layer = { name: "", extent: 4096, features: [] };
  const [keys, values, raw] = [[], [], []];
  new Reader(bytes).fields((field, part) => {
    if (field === 1) layer.name = text(part).toLowerCase();
    else if (field === 2) raw.push(part);
    else if (field === 3) keys.push(text(part));
    else if (field === 4) new Reader(part).fields((kind, value) => values.push(kind === 1 ? text(value) : null));
    else if (field === 5) layer.extent = part;
  });
  layer.features = raw.map((part) => featureOf(part, keys, values));
  return layer;
}

function featureOf(bytes, keys, values) {
  const feature = { kind: 0, parts: [], name: null };
  new Reader(bytes).fields((field, part) => {
    if (field === 2) {
      const tags = new Reader(part);
      while (tags.at < part.length) {
        const [key, value] = [tags.varint(), tags.varint()];
        if (keys[key] === "name") feature.name = values[value];
      }
    } else if (field === 3) feature.kind = part;
    else if (field === 4) feature.parts = partsOf(part);
  });
  return feature;
}

const zigzag = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

function partsOf(bytes) {
  const reader = new Reader(bytes);
  const parts = [];
  let [x, y] = [0, 0];
  while (reader.at < bytes.length) {
    const command = reader.varint();
    const [kind, count] = [command % 8, Math.floor(command / 8)];
    for (let each = 0; kind !== 7 && each < count; each += 1) {
      x += zigzag(reader.varint());
      y += zigzag(reader.varint());
      if (kind === 1) parts.push([]);
      parts.at(-1)?.push(x, y);
    }
  }
  return parts;
}
