// How the server does: rates, latency and queues over the last minutes, and the tree of brokers.

import { drawLines } from "./charts.js";
import { count, el, find, short } from "./page.js";

const CHARTS = {
  events: ["Events a second", ({ rates }) => [rates.events]],
  deliveries: ["Deliveries a second", ({ rates }) => [rates.deliveries]],
  latency: ["Latency, ms: median, 99 % (dashed)", ({ latency_ms: latency }) => [latency.p50 ?? 0, latency.p99 ?? 0]],
  queues: ["Waiting: for clients, in the inbox (dashed)", (stats) => [waiting(stats), stats.inbox ?? 0]],
};
const KEPT = 120;

const waiting = ({ clients = [] }) => clients.reduce((sum, { queued }) => sum + queued, 0);

export class Health {
  constructor() {
    this.history = Object.fromEntries(Object.keys(CHARTS).map((name) => [name, []]));
    this._charts = {};
    this._clients = el("tbody");
    const page = find("#page-health");
    for (const [name, [title]] of Object.entries(CHARTS)) {
      const chart = { canvas: el("canvas", { role: "img", "aria-label": title }), output: el("output") };
      this._charts[name] = chart;
      page.append(el("section", { class: "chart" }, el("header", {}, el("h3", {}, title), chart.output), chart.canvas));
    }
    page.append(el("h3", {}, "Clients"), el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "client"), el("th", { class: "number" }, "waiting"), el("th", { class: "number" }, "acknowledged"), el("th", { class: "number" }, "there"))), this._clients));
  }

  take(stats) {
    this.stats = stats;
    for (const [name, [, read]] of Object.entries(CHARTS)) {
      read(stats).forEach((value, line) => {
        const values = (this.history[name][line] ??= []);
        values.push(value ?? 0);
        if (values.length > KEPT) values.shift();
      });
    }
    const figures = {
      events: short(stats.rates.events),
      deliveries: short(stats.rates.deliveries),
      latency: stats.latency_ms.p50 === null || stats.latency_ms.p50 === undefined ? "–" : `${short(stats.latency_ms.p50)} ms`,
      subscriptions: count(stats.subscriptions),
      waiting: count(waiting(stats)),
    };
    for (const [name, text] of Object.entries(figures)) find(`#figure-${name}`).textContent = text;
    this.show();
  }

  show() {
    if (find("#page-health").hidden || !this.stats) return;
    for (const [name, { canvas, output }] of Object.entries(this._charts)) {
      drawLines(canvas, this.history[name], KEPT);
      output.textContent = this.history[name].map((values) => short(values.at(-1))).join(" · ");
    }
    this._clients.replaceChildren(...(this.stats.clients ?? []).map(({ client, queued, acknowledged, connected }) =>
      el("tr", {}, el("td", {}, client), el("td", { class: "number" }, count(queued)), el("td", { class: "number" }, count(acknowledged)), el("td", { class: "number" }, connected ? "✓ yes" : "– no"))));
  }
}

/** The tree of brokers, as this one knows it: who, and what each link carries and saves. */
export class Brokers {
  constructor(client) {
    this.client = client;
    this._canvas = el("canvas", { class: "tree", role: "img", "aria-label": "The tree of brokers" });
    this._links = el("tbody");
    this._says = el("p", { class: "quiet small" });
    find("#page-brokers").append(this._canvas, this._says,
      el("h3", {}, "Links"), el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "from"), el("th", {}, "to"), el("th", { class: "number" }, "carried"), el("th", { class: "number" }, "saved"), el("th", { class: "number" }, "waiting"), el("th", { class: "number" }, "up"))), this._links));
  }

  async show() {
    if (find("#page-brokers").hidden) return;
    try {
      const { brokers, links, refused = {} } = await this.client.get("v1/brokers");
      this._draw(brokers, links);
      const problems = links.flatMap(({ from, to, problems = [] }) => problems.map((each) => `${from} → ${to}: ${each}`));
      problems.push(...Object.entries(refused).map(([whom, why]) => `${whom}: ${why}`));
      const alone = links.length ? "" : "This broker stands alone: it has no links.";
      this._says.textContent = [alone, ...problems].filter(Boolean).join(" · ");
      this._links.replaceChildren(...links.map(({ from, to, up, carried = {}, saved = 0, queued = 0 }) =>
        el("tr", {}, el("td", {}, from), el("td", {}, to), el("td", { class: "number" }, count(Object.values(carried).reduce((sum, each) => sum + each, 0))), el("td", { class: "number" }, count(saved)), el("td", { class: "number" }, count(queued)), el("td", { class: "number" }, up ? "✓ yes" : "✗ no"))));
    } catch (error) {
      this._says.textContent = error.message;
    }
  }

  /** Around this broker its neighbours, in a ring; a link that is down is dashed. */
  _draw(brokers, links) {
    const canvas = this._canvas;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const { clientWidth: width, clientHeight: height } = canvas;
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    const others = brokers.filter((broker) => !broker.self);
    const spots = new Map();
    brokers.forEach((broker) => {
      const turn = (2 * Math.PI * others.indexOf(broker)) / Math.max(1, others.length) - Math.PI / 2;
      spots.set(broker.name, broker.self ? [width / 2, height / 2] : [width / 2 + Math.cos(turn) * width * 0.36, height / 2 + Math.sin(turn) * height * 0.36]);
    });
    context.strokeStyle = colour("--soft");
    for (const { from, to, up } of links) {
      if (!spots.has(from) || !spots.has(to)) continue;
      context.setLineDash(up ? [] : [4, 4]);
      context.beginPath();
      context.moveTo(...spots.get(from));
      context.lineTo(...spots.get(to));
      context.stroke();
    }
    context.setLineDash([]);
    context.textAlign = "center";
    for (const { name, self, up, subscriptions } of brokers) {
      const [x, y] = spots.get(name);
      context.beginPath();
      context.arc(x, y, self ? 12 : 9, 0, 2 * Math.PI);
      context.fillStyle = colour(self ? "--accent" : "--raised");
      context.fill();
      context.strokeStyle = colour(up === false ? "--bad" : "--accent");
      context.lineWidth = 2;
      context.stroke();
      context.fillStyle = colour("--text");
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(name, x, y + 27);
      context.fillStyle = colour("--soft");
      context.font = "11px system-ui, sans-serif";
      if (subscriptions !== undefined && subscriptions !== null) context.fillText(`${count(subscriptions)} subscriptions`, x, y + 41);
    }
  }
}
