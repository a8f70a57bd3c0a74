// A client of `stentor serve` for browsers: one WebSocket that comes back, goes on where it stopped,
// acknowledges what was handled and sends in batches. Nothing else of the console is needed:
//
//   import { Client } from "https://…/client.js";
//   const client = new Client({ client: "phone-1" });
//   client.on("delivery", async ({ seq, event, change }) => show(event));   // acknowledged when done
//   client.connect();
//   await client.subscribe("near", "price < 300 AND ST_DWithin(loc, here(), 500)", { at: [151.2, -33.9] });
//   await client.publish({ id: "e1", price: 250, loc: [151.2, -33.9] });

const SHORTEST_WAIT = 250;
const LONGEST_WAIT = 10_000;
const BATCH = 200; // records of one frame
const MOST_WAITING = 20_000; // records that wait for an answer before more are refused
const FINAL = new Map([
  [4401, "unauthorised"],
  [4403, "forbidden"],
  [4409, "taken over"],
]);

/** What the server refused: `kind`, `message`, and of an expression `start`, `stop` and `hint`. */
export class Refused extends Error {
  constructor(error, status = 0) {
    super(error.message);
    Object.assign(this, { kind: error.kind, field: error.field, start: error.start, stop: error.stop, hint: error.hint, status });
  }
}

export class Client {
  /**
   * `url` is the server's (this page's where none is given), `client` the name that deliveries are
   * numbered by, `key` an API key, `watch` what to be told besides ({events, subscriptions, stats}),
   * `deliveries` whether this connection takes the client's deliveries.
   */
  constructor({ url = new URL(".", document.baseURI).href, client = "default", key = null, watch = null, deliveries = true } = {}) {
    this.url = url.endsWith("/") ? url : `${url}/`;
    this.client = client;
    this.key = key;
    this.watch = watch;
    this.deliveries = deliveries;
    this.state = "closed";
    this.seen = 0; // the last sequence that was handled
    this._handlers = new Map();
    this._waiting = []; // records and their promises that were not sent yet
    this._sent = new Map(); // ref → frame that is not answered yet; sent again after a cut
    this._ref = 0;
    this._wait = SHORTEST_WAIT;
    this._isWanted = false;
    this._handled = Promise.resolve();
  }

  /**
   * Call `handler` for each "delivery", "gap", "events", "subscriptions", "stats", "hello", and
   * "state" (connecting, live, lost, closed, or why the server refuses). Gives what ends it.
   */
  on(kind, handler) {
    if (!this._handlers.has(kind)) this._handlers.set(kind, new Set());
    this._handlers.get(kind).add(handler);
    return () => this._handlers.get(kind).delete(handler);
  }

  connect() {
    this._isWanted = true;
    this._open();
    return this;
  }

  close() {
    this._isWanted = false;
    clearTimeout(this._again);
    this._socket?.close(1000);
    this._tell("state", (this.state = "closed"));
  }

  /** Publish an event, or several; answers when the server has kept them. */
  publish(events) {
    return this._all(events, (event) => ({ ...event, id: event.id ?? crypto.randomUUID(), op: "publish" }));
  }

  /** Let a live event be another one, under its id. */
  update(event) {
    return this._record({ ...event, op: "update" });
  }

  withdraw(id) {
    return this._record({ op: "withdraw", id });
  }

  subscribe(id, expression, { at, until } = {}) {
    return this._record({ op: "subscribe", id, expression, ...(at && { at }), ...(until && { until }) });
  }

  move(id, at) {
    return this._record({ op: "move", id, at });
  }

  unsubscribe(id) {
    return this._record({ op: "unsubscribe", id });
  }

  /** Ask over HTTP: `get("v1/stats")`, `ask("POST", "v1/match", {expression})`. */
  get(path) {
    return this.ask("GET", path);
  }

  async ask(method, path, body) {
    const headers = { Accept: "application/json" };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    let told = null;
    try {
      told = text ? JSON.parse(text) : null;
    } catch {
      told = { error: { kind: "unreadable", message: text.slice(0, 200) } };
    }
    if (!answer.ok || told?.error) throw new Refused(told?.error ?? { kind: "status", message: `${answer.status} ${answer.statusText}` }, answer.status);
    return told;
  }

  async _open() {
    this._tell("state", (this.state = "connecting"));
    let address;
    try {
      address = await this._address();
    } catch (error) {
      if (error.status === 401 || error.status === 403) this._end(error.status === 401 ? "unauthorised" : "forbidden");
      else this._retry();
      return;
    }
    if (!this._isWanted) return;
    const socket = (this._socket = new WebSocket(address));
    socket.onmessage = ({ data }) => {
      const told = JSON.parse(data);
      for (const frame of Array.isArray(told) ? told : [told]) this._take(frame);
    };
    socket.onclose = ({ code }) => {
      if (socket !== this._socket) return;
      if (FINAL.has(code)) this._end(FINAL.get(code));
      else if (this._isWanted) this._retry();
    };
  }

  async _address() {
    const address = new URL("v1/ws", this.url);
    address.protocol = address.protocol.replace("http", "ws");
    address.searchParams.set("client", this.client);
    address.searchParams.set("deliveries", String(this.deliveries));
    if (this.key) address.searchParams.set("ticket", (await this.ask("POST", "v1/tickets", {})).ticket);
    return address;
  }

  _end(why) {
    this._isWanted = false;
    this._tell("state", (this.state = why));
  }

  _retry() {
    this._tell("state", (this.state = "lost"));
    this._again = setTimeout(() => this._isWanted && this._open(), this._wait * (0.75 + Math.random() / 2));
    this._wait = Math.min(LONGEST_WAIT, this._wait * 2);
  }

  _take(frame) {
    if (frame.type === "hello") this._greeted(frame);
    else if (frame.type === "deliveries") this._handled = this._handled.then(() => this._deliver(frame.deliveries));
    else if (frame.type === "answer") this._answered(frame);
    else if (frame.type === "error") this._failed(frame);
    else if (frame.type === "gap") {
      this.seen = Math.max(this.seen, frame.to);
      this._tell("gap", frame);
    } else this._tell(frame.type, frame);
  }

  _greeted(hello) {
    this._wait = SHORTEST_WAIT;
    this.seen = Math.max(this.seen, hello.acknowledged);
    if (hello.last < this.seen) this.seen = hello.acknowledged; // the server's store was begun anew
    this._tell("state", (this.state = "live"));
    this._tell("hello", hello);
    if (this.watch) this._send({ op: "watch", ...this.watch });
    for (const { frame } of this._sent.values()) this._send(frame);
    this._flush();
  }

  /** Hand on what was not seen yet, then say up to where it is handled. */
  async _deliver(deliveries) {
    for (const delivery of deliveries) {
      if (delivery.seq <= this.seen) continue;
      for (const handler of this._handlers.get("delivery") ?? []) await handler(delivery);
      this.seen = delivery.seq;
    }
    if (deliveries.length) this._send({ op: "ack", seq: this.seen });
  }

  async _all(events, asRecord) {
    const answers = (Array.isArray(events) ? events : [events]).map((event) => this._record(asRecord(event)));
    const told = await Promise.all(answers);
    return Array.isArray(events) ? told : told[0];
  }

  _record(record) {
    if (this._waiting.length + this._sent.size * BATCH > MOST_WAITING) {
      return Promise.reject(new Refused({ kind: "full", message: "too much waits for the server's answers: wait for some of them" }));
    }
    return new Promise((resolve, reject) => {
      this._waiting.push({ record, resolve, reject });
      if (this._waiting.length === 1) queueMicrotask(() => this._flush());
    });
  }

  _flush() {
    while (this.state === "live" && this._waiting.length) {
      const some = this._waiting.splice(0, BATCH);
      const ref = (this._ref += 1);
      const frame = { op: "records", ref, results: true, records: some.map(({ record }) => record) };
      this._sent.set(ref, { frame, some });
      this._send(frame);
    }
  }

  _answered({ ref, rejected = [], results = [] }) {
    const { some } = this._sent.get(ref) ?? { some: [] };
    this._sent.delete(ref);
    const refusals = new Map(rejected.map(({ index, error }) => [index, error]));
    const answers = results.values();
    some.forEach(({ resolve, reject }, index) => {
      if (refusals.has(index)) reject(new Refused(refusals.get(index)));
      else resolve(answers.next().value ?? null);
    });
  }

  _failed({ ref, error }) {
    const { some } = this._sent.get(ref) ?? { some: [] };
    this._sent.delete(ref);
    for (const { reject } of some) reject(new Refused(error));
    this._tell("error", error);
  }

  _send(frame) {
    if (this._socket?.readyState === WebSocket.OPEN) this._socket.send(JSON.stringify(frame));
  }

  _tell(kind, told) {
    for (const handler of this._handlers.get(kind) ?? []) handler(told);
  }
}
