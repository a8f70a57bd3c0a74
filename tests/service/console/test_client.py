"""`client.js` in a browser, against a scripted server: order, handlers that throw, refusals."""

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.support.servers import Server

pytestmark = pytest.mark.xdist_group("browser")  # one browser, one after the other

#: A socket that the test is the other end of.
FAKE = """async () => {
  window.sent = [];
  window.failed = [];
  window.WebSocket = class {
    static OPEN = 1;
    constructor() {
      this.readyState = 1;
      window.socket = this;
      window.opened = (window.opened ?? 0) + 1;
    }
    send(text) { window.sent.push(JSON.parse(text)); }
    close() {}
    say(frame) { this.onmessage({ data: JSON.stringify(frame) }); }
    end(code, reason = "") { this.readyState = 3; this.onclose({ code, reason }); }
  };
  window.Client = (await import("./client.js")).Client;
  window.until = async (test) => {
    const end = Date.now() + 30000;
    while (!test()) {
      if (Date.now() > end) throw new Error(`never: ${test}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  window.hello = (acknowledged, last, frame = 4000000) =>
    socket.say({ type: "hello", acknowledged, last, limits: { frame } });
  window.deliver = (from, to) => {
    const deliveries = [];
    for (let seq = from; seq <= to; seq += 1) deliveries.push({ seq, event: { id: `e${seq}` } });
    socket.say({ type: "deliveries", deliveries });
  };
  window.answer = ({ ref, records }) =>
    socket.say({ type: "answer", ref, rejected: [], results: records.map(({ id }) => id) });
  window.again = async () => { const count = opened; await until(() => opened > count); };
  window.acks = () => sent.filter(({ op }) => op === "ack").map(({ seq }) => seq);
  window.client = new Client();
  client.connect();
  await until(() => window.socket);
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("client"), index="scan", console=True) as one:
        yield one


@pytest.fixture
def page(served, open_page):
    found = open_page("data:text/html,")
    found.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    found.goto(f"{served.url}/health")
    found.evaluate(FAKE)
    return found


def test_a_gap_waits_for_what_came_before_it(page):
    found = page.evaluate("""async () => {
      const got = [];
      client.on("delivery", async ({ seq }) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        got.push(seq);
      });
      client.on("gap", ({ from, to }) => got.push([from, to]));
      hello(0, 22);
      deliver(1, 10);
      socket.say({ type: "gap", from: 11, to: 20, reason: "dropped" });
      deliver(21, 22);
      await until(() => acks().includes(22));
      return [got, acks()];
    }""")
    assert found == [[*range(1, 11), [11, 20], 21, 22], [22]]


def test_a_handler_that_throws_stops_no_later_delivery(page):
    found = page.evaluate("""async () => {
      const got = [], failures = [];
      client.on("delivery", async ({ seq }) => {
        if (seq === 2) throw new Error("asynchronous");
        got.push(seq);
      });
      client.on("delivery", ({ seq }) => { if (seq === 3) throw new Error("at once"); });
      client.on("gap", () => { throw new Error("gap"); });
      client.on("failure", ({ kind, delivery, error }) =>
        failures.push([kind, delivery?.seq, error.message]));
      hello(0, 9);
      deliver(1, 3);
      await until(() => acks().includes(3));
      socket.say({ type: "gap", from: 4, to: 6, reason: "expired" });
      deliver(7, 9);
      await until(() => acks().includes(9));
      return [got, failures];
    }""")
    assert found == [
        [1, 3, 7, 8, 9],
        [
            ["delivery", 2, "asynchronous"],
            ["delivery", 3, "at once"],
            ["gap", None, "gap"],
        ],
    ]


def test_what_waits_for_a_slow_handler_is_handled_once_after_a_cut(page):
    found = page.evaluate("""async () => {
      const got = [];
      let go;
      const held = new Promise((resolve) => (go = resolve));
      client.on("delivery", async ({ seq }) => { await held; got.push(seq); });
      hello(0, 5);
      deliver(1, 5);
      socket.end(1006);
      await again();
      hello(0, 6);
      deliver(1, 6);
      go();
      await until(() => acks().includes(6));
      return got;
    }""")
    assert found == [1, 2, 3, 4, 5, 6]


def test_what_waits_of_a_store_that_is_no_more_acknowledges_nothing_of_the_next(page):
    found = page.evaluate("""async () => {
      const got = [];
      let go;
      const held = new Promise((resolve) => (go = resolve));
      client.on("delivery", async ({ seq }) => { await held; got.push(seq); });
      hello(0, 5);
      deliver(1, 5);
      socket.end(1006);
      await again();
      hello(0, 2);
      go();
      deliver(1, 2);
      await until(() => got.length === 7);
      await until(() => acks().length);
      return [got, acks()];
    }""")
    assert found == [[1, 2, 3, 4, 5, 1, 2], [2]]


def test_records_are_sent_in_frames_that_the_server_takes(page):
    found = page.evaluate("""async () => {
      hello(0, 0, 5000);
      const told = [1, 4000, 4000, 900, 6000, 10].map((length, n) =>
        client.publish({ id: `e${n}`, text: "é".repeat(length / 2) }).catch(({ kind }) => kind));
      const strange = client.publish({ id: "big", n: 1n }).catch(({ name }) => name);
      await until(() => sent.length === 4);
      const sizes = sent.map((frame) => new TextEncoder().encode(JSON.stringify(frame)).length);
      for (const frame of [...sent]) answer(frame);
      return [await Promise.all(told), Math.max(...sizes) <= 5000, await strange];
    }""")
    assert found == [["e0", "e1", "e2", "e3", "too_large", "e5"], True, "TypeError"]


@pytest.mark.parametrize(("code", "kind"), [(1007, "record"), (1009, "too_large")])
def test_a_frame_with_which_the_server_ends_the_connection_is_refused_alone(page, code, kind):
    found = page.evaluate(
        """async (code) => {
      let told = 0;
      const answers = [];
      const serve = () => {
        while (told < sent.length) {
          const frame = sent[told++];
          if (frame.records[0].id === "bad") return socket.end(code, "no such frame");
          if (opened > 1) answer(frame);
        }
      };
      hello(0, 0);
      for (const id of ["a", "bad", "b"]) {
        answers.push(client.publish({ id }).catch(({ kind, message }) => [kind, message]));
        await until(() => sent.length > answers.length - 1);
      }
      while (client._sent.size) {
        const count = opened;
        serve();
        if (client.state !== "live") {
          await until(() => opened > count);
          told = sent.length;
          hello(0, 0);
        }
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      const after = client.publish({ id: "c" });
      await until(() => told < sent.length);
      serve();
      return [await Promise.all(answers), await after];
    }""",
        code,
    )
    assert found == [["a", [kind, "no such frame"], "b"], "c"]


def test_who_is_refused_for_good_hears_of_it(page):
    found = page.evaluate("""async () => {
      const states = [];
      client.on("state", (state) => states.push(state));
      const waiting = client.publish({ id: "a" }).catch(({ kind }) => kind);
      socket.end(1007, "expected 1 to 64 letters");
      const later = client.publish({ id: "b" }).catch(({ message }) => message);
      return [await waiting, await later, states];
    }""")
    assert found == ["record", "expected 1 to 64 letters", ["record"]]
