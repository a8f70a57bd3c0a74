// The regions that an expression names, as shapes to draw; and shapes as text of the language.

import { destination } from "./view.js";

const TOKEN = /\s+|[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|[A-Za-z_]\w*|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[^]/g;
const KEYWORDS = new Set(["and", "or", "not", "in", "is", "null", "like", "between", "true", "false"]);
const CORNERS = 72;
const LONGEST = 100_000; // characters that are looked at

/** The tokens of a text with their kinds, white space too: enough to colour it and to find calls. */
export function tokens(text) {
  const found = [];
  for (const [token] of text.slice(0, LONGEST).matchAll(TOKEN)) found.push([kindOf(token), token]);
  for (let index = 0; index < found.length; index += 1) {
    if (found[index][0] === "name" && next(found, index)?.[1] === "(") found[index][0] = "function";
  }
  return found;
}

function kindOf(token) {
  if (/^\s/.test(token)) return "space";
  if (/^[rR]?['"]./s.test(token)) return "string";
  if (/^[A-Za-z_`]/.test(token)) return KEYWORDS.has(token.toLowerCase()) ? "keyword" : "name";
  return /^[-+.]?\d|^[-+]?\.\d/.test(token) ? "number" : "sign";
}

function next(found, index) {
  const after = found[index + 1];
  return after?.[0] === "space" ? found[index + 2] : after;
}

/**
 * The regions of an expression, as the server tells them: {kind: "circle", centre, radius, here},
 * {kind: "box", west, south, east, north} or {kind: "polygon", rings}; each with `negated`.
 */
export function regionsOf(expression) {
  const words = tokens(expression).filter(([kind]) => kind !== "space").map(([, token]) => token);
  const found = [];
  words.forEach((word, index) => {
    if (words[index + 1] !== "(") return;
    const region = READERS[word.toLowerCase()]?.(words, index);
    if (region) found.push({ ...region, negated: isNegated(words, index) });
  });
  return found;
}

const READERS = {
  st_dwithin(words, index) {
    const call = argumentsOf(words, index + 1);
    const metres = Number(call.at(-1));
    const here = call.findIndex((word) => word.toLowerCase() === "here");
    const point = call.findIndex((word) => word.toLowerCase() === "st_point");
    if (!(metres >= 0) || (here < 0 && point < 0)) return null;
    if (here >= 0) return { kind: "circle", centre: null, radius: metres, here: true };
    const centre = [Number(call[point + 2]), Number(call[point + 4])];
    return centre.every(Number.isFinite) ? { kind: "circle", centre, radius: metres, here: false } : null;
  },
  st_makeenvelope(words, index) {
    const [west, south, east, north] = argumentsOf(words, index + 1).filter((word) => word !== ",").map(Number);
    return [west, south, east, north].every(Number.isFinite) ? { kind: "box", west, south, east, north } : null;
  },
  st_geomfromtext(words, index) {
    const rings = [...(words[index + 2] ?? "").matchAll(/\(([^()]+)\)/g)].map(([, ring]) =>
      ring.split(",").map((pair) => pair.trim().split(/\s+/).map(Number)),
    );
    const isFine = rings.length && rings.flat().every((pair) => pair.length === 2 && pair.every(Number.isFinite));
    return isFine ? { kind: "polygon", rings } : null;
  },
};

/** The words between the parenthesis at `open` and the one that closes it. */
function argumentsOf(words, open) {
  let depth = 0;
  for (let index = open; index < words.length; index += 1) {
    if (words[index] === "(") depth += 1;
    if (words[index] === ")" && (depth -= 1) === 0) return words.slice(open + 1, index);
  }
  return [];
}

/** Whether NOT stands before the call, or before the call that it is an argument of. */
function isNegated(words, index) {
  let depth = 0;
  for (let at = index - 1; at >= 0; at -= 1) {
    const word = words[at].toLowerCase();
    if (word === ")") depth += 1;
    if (word === "(" && (depth -= 1) < 0) depth = 0;
    if (depth === 0 && word === "not") return true;
    if (depth === 0 && (word === "and" || word === "or")) return false;
  }
  return false;
}

/** The rings of a region as locations; `at` is where here() is. None where it cannot be drawn. */
export function ringsOf(region, at) {
  if (region.kind === "polygon") return region.rings;
  if (region.kind === "box") {
    const { west, south, north } = region;
    const east = region.east < west ? region.east + 360 : region.east;
    return [[[west, south], [(west + east) / 2, south], [east, south], [east, north], [(west + east) / 2, north], [west, north], [west, south]]];
  }
  const centre = centreOf(region, at);
  if (!centre) return [];
  const ring = [];
  for (let corner = 0; corner <= CORNERS; corner += 1) {
    ring.push(destination(centre, region.radius, (2 * Math.PI * corner) / CORNERS));
  }
  return [ring];
}

function centreOf(region, at) {
  return region.here ? (at ?? region.centre) : region.centre;
}

/** The middle of a region: where a subscription without a location of its own is shown. */
export function middleOf(region, at) {
  if (region.kind === "circle") return centreOf(region, at) ?? null;
  const points = ringsOf(region, at)[0] ?? [];
  if (!points.length) return null;
  const corners = points.slice(0, -1);
  return [0, 1].map((axis) => corners.reduce((sum, point) => sum + point[axis], 0) / corners.length);
}

const degrees = (value) => String(Number(value.toFixed(6)));
const onGlobe = (longitude) => longitude - 360 * Math.round(longitude / 360);

/** A region as text of the language, asked of an attribute. */
export function predicateOf(region, attribute = "loc") {
  const name = /^[A-Za-z_]\w*$/.test(attribute) ? attribute : `\`${attribute.replaceAll("`", "``")}\``;
  if (region.kind === "circle") {
    const place = region.here
      ? "here()"
      : `ST_Point(${degrees(onGlobe(region.centre[0]))}, ${degrees(region.centre[1])})`;
    return `ST_DWithin(${name}, ${place}, ${Math.max(1, Math.round(region.radius))})`;
  }
  if (region.kind === "box") {
    const corners = [onGlobe(region.west), region.south, onGlobe(region.east), region.north];
    return `ST_Within(${name}, ST_MakeEnvelope(${corners.map(degrees).join(", ")}))`;
  }
  const rings = region.rings.map((ring) => `(${ring.map((point) => point.map(degrees).join(" ")).join(", ")})`);
  return `ST_Within(${name}, ST_GeomFromText('POLYGON(${rings.join(", ")})'))`;
}
