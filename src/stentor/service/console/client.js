// A client of `stentor serve` for browsers: one WebSocket that comes back, goes on where it stopped,
// acknowledges what was handled and sends in batches. Nothing else of the console is needed:
//
//   import { Client } from "https://…/client.js";
//   const client = new Client({ client: "phone-1" });
//   client.on("delivery", async ({ seq, event, change }) => show(event));   // acknowledged when done
//   client.on("failure", ({ delivery, error }) => note(delivery, error));   // a handler has thrown
//   client.connect();
//   await client.subscribe("near", "price < 300 AND ST_DWithin(loc, here(), 500)", { at: [151.2, -33.9] });
//   await client.publish({ id: "e1", price: 250, loc: [151.2, -33.9] });

const SHORTEST_WAIT = 250;
const LONGEST_WAIT = 10_000;
const BATCH = 200; // records of one frame
const ACKNOWLEDGE_EVERY = 100;
const AROUND = 200; // bytes of a frame beside its records, at most
const MOST_WAITING = 20_000; // records that wait for an answer before more are refused
const FINAL = new Map([
  [4401, "unauthorised"],
  [4403, "forbidden"],
  [4409, "taken over"],
]);
const REFUSED = new Map([
  [1007, "record"],
  [1009, "too_large"],
]); // with which the server ends a connection for the sake of one frame
const size = (text) => new TextEncoder().encode(text).length;

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
    this._arrived = 0; // the last that came: it may wait for its handler
    this._store = 0; // grows where the server's sequences have begun anew
    this._handlers = new Map();
    this._waiting = []; // records and their promises that were not sent yet
    this._sent = new Map(); // ref → frame that is not answered yet; sent again after a cut
    this._onTheirWay = new Set(); // of those, what was sent over this connection
    this._isCareful = false; // one frame at a time: one of them has ended the last connection
    this._most = 4_000_000; // bytes of a frame, as the server says
    this._ref = 0;
    this._wait = SHORTEST_WAIT;
    this._isWanted = false;
    this._refused = null; // why the server refuses this client for good
    this._handled = Promise.resolve();
  }

  /**
   * Call `handler` for each "delivery", "gap", "events", "subscriptions", "stats", "hello", "error"
   * (a frame that was refused) and "state" (connecting, live, lost, closed, or why the server
   * refuses). Gives what ends it. Deliveries and gaps are handled one after the other, in order.
   * A delivery whose handler throws, or rejects, counts as handled: it is acknowledged, so that it
   * stops none of those behind it, and the "failure" handlers are told {kind, delivery, error}.
   */
  on(kind, handler) {
    if (!this._handlers.has(kind)) this._handlers.set(kind, new Set());
    this._handlers.get(kind).add(handler);
    return () => this._handlers.get(kind).delete(handler);
  }

  connect() {
    this._isWanted = true;
    this._refused = null;
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
      if (error.status === 401 || error.status === 403) this._end(error.status === 401 ? "unauthorised" : "forbidden", error.message);
      else this._retry();
      return;
    }
    if (!this._isWanted) return;
    const socket = (this._socket = new WebSocket(address));
    socket.onmessage = ({ data }) => {
      const told = JSON.parse(data);
      for (const frame of Array.isArray(told) ? told : [told]) this._take(frame);
    };
    socket.onclose = ({ code, reason }) => {
      if (socket !== this._socket) return;
      const error = { kind: REFUSED.get(code), message: reason || "the server takes no such frame" };
      if (FINAL.has(code)) this._end(FINAL.get(code), reason);
      else if (error.kind && this.state === "connecting") this._end(error.kind, reason); // nothing was sent: it is the client
      else {
        if (error.kind) this._blame(error);
        if (this._isWanted) this._retry();
      }
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

  /** Be refused for good: whoever waits hears of it, and whoever asks for more until `connect`. */
  _end(why, message = "") {
    this._isWanted = false;
    this._refused = { kind: why, message: message || why };
    this._tell("state", (this.state = why));
    const waiting = [...[...this._sent.values()].flatMap(({ some }) => some), ...this._waiting];
    this._sent.clear();
    this._waiting = [];
    for (const { reject } of waiting) reject(new Refused(this._refused));
  }

  _retry() {
    this._tell("state", (this.state = "lost"));
    this._again = setTimeout(() => this._isWanted && this._open(), this._wait * (0.75 + Math.random() / 2));
    this._wait = Math.min(LONGEST_WAIT, this._wait * 2);
  }

  _take(frame) {
    if (frame.type === "hello") this._greeted(frame);
    else if (frame.type === "deliveries") for (const delivery of frame.deliveries) this._line("delivery", delivery, delivery.seq);
    else if (frame.type === "gap") this._line("gap", frame, frame.to);
    else if (frame.type === "answer") this._answered(frame);
    else if (frame.type === "error") this._failed(frame);
    else this._tell(frame.type, frame);
  }

  _greeted(hello) {
    this._wait = SHORTEST_WAIT;
    this._most = hello.limits?.frame ?? this._most;
    if (hello.last < this._arrived) {
      // The server's store was begun anew: what still waits here is none of its.
      this._store += 1;
      this._arrived = this.seen = hello.acknowledged;
    }
    this._arrived = Math.max(this._arrived, hello.acknowledged);
    this._tell("state", (this.state = "live"));
    this._tell("hello", hello);
    if (this.watch) this._send({ op: "watch", ...this.watch });
    if (this.seen > hello.acknowledged) this._send({ op: "ack", seq: this.seen });
    this._onTheirWay.clear();
    this._resend();
  }

  /** Let what came wait for its handlers, behind all that came before; what is known already not. */
  _line(kind, told, seq) {
    if (seq <= this._arrived) return;
    this._arrived = seq;
    const store = this._store;
    this._handled = this._handled.then(() => this._hand(kind, told, seq, store));
  }

  /** Call the handlers, then say up to where it is handled; for several at once where more wait. */
  async _hand(kind, told, seq, store) {
    for (const handler of [...(this._handlers.get(kind) ?? [])]) {
      try {
        await handler(told);
      } catch (error) {
        this._report(kind, told, error);
      }
    }
    if (store !== this._store) return;
    this.seen = seq;
    if (seq === this._arrived || seq % ACKNOWLEDGE_EVERY === 0) this._send({ op: "ack", seq });
  }

  /** Tell of a handler that has thrown; where nobody wants to know, the page. */
  _report(kind, told, error) {
    const handlers = this._handlers.get("failure");
    if (kind !== "failure" && handlers?.size) this._tell("failure", { kind, delivery: kind === "delivery" ? told : null, error });
    else (globalThis.reportError ?? console.error)(error);
  }

  async _all(events, asRecord) {
    const answers = (Array.isArray(events) ? events : [events]).map((event) => this._record(asRecord(event)));
    const told = await Promise.all(answers);
    return Array.isArray(events) ? told : told[0];
  }

  _record(record) {
    if (this._refused) return Promise.reject(new Refused(this._refused));
    if (this._waiting.length + this._sent.size * BATCH > MOST_WAITING) {
      return Promise.reject(new Refused({ kind: "full", message: "too much waits for the server's answers: wait for some of them" }));
    }
    return new Promise((resolve, reject) => {
      const text = JSON.stringify(record); // what cannot be written rejects
      this._waiting.push({ text, bytes: size(text), resolve, reject });
      if (this._waiting.length === 1) queueMicrotask(() => this._flush());
    });
  }

  /** Send what waits, in frames that the server takes. */
  _flush() {
    while (this.state === "live" && this._waiting.length && !(this._isCareful && this._onTheirWay.size)) {
      const some = [];
      let bytes = AROUND;
      while (this._waiting.length && some.length < (this._isCareful ? 1 : BATCH)) {
        const next = this._waiting[0];
        if (some.length && bytes + next.bytes > this._most) break;
        bytes += next.bytes + 1;
        some.push(this._waiting.shift());
      }
      const ref = (this._ref += 1);
      const text = `{"op":"records","ref":${ref},"results":true,"records":[${some.map((one) => one.text).join()}]}`;
      this._sent.set(ref, { text, bytes, some });
      this._sendFrame(ref);
    }
  }

  /** Send again what was not answered; one by one where one of them has ended the connection. */
  _resend() {
    for (const ref of [...this._sent.keys()]) {
      if (this._onTheirWay.has(ref)) continue;
      if (this._isCareful && this._onTheirWay.size) return;
      this._sendFrame(ref);
    }
    if (!this._onTheirWay.size) this._isCareful = false;
    this._flush();
  }

  _sendFrame(ref) {
    const { text, bytes } = this._sent.get(ref);
    if (bytes > this._most) {
      this._refuse(ref, { kind: "too_large", message: `${bytes} bytes are more than a frame may have: ${this._most}` });
    } else {
      this._onTheirWay.add(ref);
      if (this._socket?.readyState === WebSocket.OPEN) this._socket.send(text);
    }
  }

  /** Refuse the frame with which the connection ended; find out which, where it may be several. */
  _blame(error) {
    if (this._onTheirWay.size === 1) this._refuse([...this._onTheirWay][0], error);
    else if (this._onTheirWay.size) this._isCareful = true;
    this._tell("error", error);
  }

  _refuse(ref, error) {
    const { some } = this._sent.get(ref) ?? { some: [] };
    this._sent.delete(ref);
    this._onTheirWay.delete(ref);
    for (const { reject } of some) reject(new Refused(error));
  }

  _answered({ ref, rejected = [], results = [] }) {
    const { some } = this._sent.get(ref) ?? { some: [] };
    this._sent.delete(ref);
    this._onTheirWay.delete(ref);
    const refusals = new Map(rejected.map(({ index, error }) => [index, error]));
    const answers = results.values();
    some.forEach(({ resolve, reject }, index) => {
      if (refusals.has(index)) reject(new Refused(refusals.get(index)));
      else resolve(answers.next().value ?? null);
    });
    if (this._isCareful) this._resend();
  }

  _failed({ ref, error }) {
    this._refuse(ref, error);
    this._tell("error", error);
    if (this._isCareful) this._resend();
  }

  _send(frame) {
    if (this._socket?.readyState === WebSocket.OPEN) this._socket.send(JSON.stringify(frame));
  }

  _tell(kind, told) {
    for (const handler of [...(this._handlers.get(kind) ?? [])]) {
      try {
        handler(told);
      } catch (error) {
        this._report(kind, told, error);
      }
    }
  }
}
