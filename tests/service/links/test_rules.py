"""What links refuse, tell, hold and say again: without sockets."""

import random
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stentor.broker import Broker
from stentor.broker.greetings import LinkDigest
from stentor.model.record import Subscribe
from stentor.service import questions
from stentor.service.core import Core
from stentor.service.links.frames import Assembler, LinkRefusedError, pieces
from stentor.service.links.session import LinkSession
from stentor.service.records import Records
from stentor.service.settings import LinkQueueSettings, ServeSettings
from stentor.wire.records import record_from_dict
from tests.support.linked_brokers import Clock, LinkedBrokers


def linked(folder: Path, *links: tuple[str, str], **settings: Any) -> LinkedBrokers:
    brokers = LinkedBrokers(folder, list(links), random.Random(1), **settings)
    brokers.run_until_idle()
    return brokers


def subscribe(id: str, expression: str) -> dict[str, Any]:
    return {"op": "subscribe", "id": id, "expression": expression}


def test_a_link_that_would_close_a_ring_is_refused(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"), ("b", "c"), ("c", "d"))
    brokers.links.append(("d", "a"))
    brokers.run_until_idle()
    assert "closes a ring" in brokers.refused["d", "a"]
    assert set(brokers.cores["a"].broker.links) == {"b"}
    told = questions.brokers_of(brokers.cores["d"])["refused"]
    assert any("expected a tree" in reason for reason in told.values())
    brokers.feed("a", subscribe("s", "x > 0"))
    brokers.run_until_idle()
    brokers.feed("d", {"op": "publish", "id": "e", "x": 1})
    brokers.run_until_idle()
    assert brokers.delivered() == [("s", "e", "added")]
    brokers.close()


def test_a_ring_is_refused_while_one_of_its_links_is_cut(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"), ("b", "c"))
    brokers.cut(("b", "c"))
    brokers.links[:] = [("c", "a")]
    brokers.run_until_idle()
    assert "closes a ring" in brokers.refused["c", "a"]
    brokers.close()


def test_two_links_that_make_a_ring_at_once_leave_a_tree(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"), ("c", "d"))
    brokers.links += [("a", "c"), ("d", "b")]  # each is fine by itself
    for link in (("a", "c"), ("d", "b")):
        brokers.connect(link)
    for _ in range(3):  # hello, resume, digest: before either has told of it
        for link in (("a", "c"), ("d", "b")):
            connection = brokers.connections[link]
            for side in (0, 1):
                connection.deliver(side)
    for _ in range(2_000):
        link = brokers.seeded.choice(brokers.links)
        if link in brokers.connections:
            brokers.move(link)
    edges = {
        tuple(sorted((name, other)))
        for name, core in brokers.cores.items()
        for other in core.broker.links
    }
    assert len(edges) == 3
    brokers.close()


def test_two_brokers_of_one_name_are_refused(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"))
    other = Core(ServeSettings(folder=tmp_path / "x", index="scan", broker="a"), Clock())
    session = LinkSession(brokers.cores["b"].links, is_dialler=False)
    with pytest.raises(LinkRefusedError, match="two brokers are called"):
        LinkSession(other.links, is_dialler=True).take(session.begin()[0])
    other.close()
    brokers.close()


def test_schemas_are_compared_and_both_operators_told(tmp_path: Path) -> None:
    brokers = LinkedBrokers(tmp_path, [("a", "b")], random.Random(1))
    brokers.feed("a", subscribe("s", "price > 3"))
    brokers.feed("b", subscribe("t", "price = 'low'"), subscribe("u", "stock > 1"))
    brokers.run_until_idle()
    for name in "ab":
        [link] = [
            one for one in questions.brokers_of(brokers.cores[name])["links"] if one["from"] == name
        ]
        assert "the attribute 'price' is a " in str(link["problems"])
    brokers.feed("a", {"op": "publish", "id": "e", "stock": 2})
    brokers.run_until_idle()
    assert brokers.delivered() == [("u", "e", "added")], "everything else passes"
    brokers.close()


def test_a_slow_broker_holds_its_senders_and_not_the_others(tmp_path: Path) -> None:
    brokers = linked(
        tmp_path,
        ("a", "b"),
        ("b", "c"),
        credit=5,
        link_queue=LinkQueueSettings(messages=10),
    )
    brokers.feed("c", subscribe("s", "x > 0"))
    brokers.run_until_idle()
    brokers.cut(("b", "c"))
    sent = 0
    core = brokers.cores["a"]
    for _ in range(400):
        event = {"op": "publish", "id": f"e{sent}", "x": 1}
        answer = core.run([Records("a", "a", [event])], {}).answers[0]
        if answer.errors:
            assert "senders are held" in str(answer.errors[0][1])
            break
        sent += 1
        for _ in range(4):
            brokers.move(("a", "b"))
    assert 20 <= sent <= 60, "ten wait at b, ten at a, and some were on their way"
    for name in ("a", "b"):
        for queue in brokers.cores[name].store.link_queues.values():
            assert queue.queued <= 40
    assert brokers.feed("a", subscribe("t", "x > 5")).accepted == 1, "changes are taken"
    brokers.run_until_idle()
    assert sorted(brokers.delivered()) == sorted(("s", f"e{n}", "added") for n in range(sent))
    brokers.close()


def test_links_held_on_both_sides_go_on(tmp_path: Path) -> None:
    """Both directions are full: acknowledgements pass by the batches that wait."""
    limits = LinkQueueSettings(messages=5)
    brokers = linked(tmp_path, ("a", "b"), ("b", "c"), credit=4, link_queue=limits)
    brokers.feed("a", subscribe("s", "x > 0"))
    brokers.feed("c", subscribe("t", "x > 0"))
    brokers.run_until_idle()
    counts = {"a": 0, "c": 0}
    for _ in range(300):
        for name, count in [*counts.items()]:
            event = {"op": "publish", "id": f"{name}{count}", "x": 1}
            answer = brokers.cores[name].run([Records("a", name, [event])], {}).answers[0]
            counts[name] += answer.accepted
        brokers.move(brokers.seeded.choice(brokers.links))
    brokers.run_until_idle()
    assert len(brokers.delivered()) == 2 * sum(counts.values())
    brokers.close()


def test_a_message_that_came_over_too_many_links_is_refused(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"), ("b", "c"), hop_limit=1)
    brokers.feed("c", subscribe("s", "x > 0"))
    brokers.run_until_idle()
    assert "is it a ring" in str(questions.brokers_of(brokers.cores["a"])["links"])
    brokers.close()


def test_no_neighbour_moves_the_clock(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"))
    brokers.feed("b", subscribe("s", "x > 0"))
    brokers.run_until_idle()
    core = brokers.cores["a"]
    message = {"op": "publish", "id": "a/e", "x": 1, "time": 9_000_000_000_000_000}
    first = core.store.link_queues["b"].sent + 1
    frame = msgspec.msgpack.encode({"type": "batch", "first": first, "rows": [[1, [message]]]})
    connection = brokers.connections["a", "b"]
    connection.waiting[1].extend(pieces(frame))
    connection.deliver(1)
    assert brokers.cores["b"].broker.time <= brokers.clock.seconds * 1_000_000
    assert brokers.delivered() == [("s", "e", "added")]
    brokers.close()


def test_a_restart_says_nothing_again(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"))
    brokers.feed("a", *(subscribe(f"s{n}", f"x = {n}") for n in range(40)))
    brokers.feed("b", {"op": "publish", "id": "e", "x": 3, "until": 9e8})
    brokers.run_until_idle()
    before = {name: core.store.link_queues for name, core in brokers.cores.items()}
    sent = [queue.sent for queues in before.values() for queue in queues.values()]
    for name in "ab":
        brokers.kill(name)
    brokers.run_until_idle()
    after = [
        queue.sent for core in brokers.cores.values() for queue in core.store.link_queues.values()
    ]
    assert after == sent
    brokers.close()


def _broker(name: str, other: str) -> Broker:
    broker = Broker(name, policy="none", index="scan")
    broker.add_neighbour(other)
    return broker


def _exchange(brokers: dict[str, Broker]) -> int:
    """Greet by digests until nothing is left to say; how many interests were said."""
    one, two = brokers
    digests = {name: brokers[name].digest(other) for name, other in ((one, two), (two, one))}
    waiting = [
        (name, sent)
        for name, other in ((one, two), (two, one))
        for sent in brokers[name].connect(other, LinkDigest.from_bytes(digests[other].to_bytes()))
    ]
    said = 0
    while waiting:
        source, (to, message) = waiting.pop(0)
        said += len(getattr(message, "interests", ()))
        output = brokers[to].receive(source, [message])
        assert not [one for one in output.answers if isinstance(one, Exception)]
        waiting += [(to, sent) for sent in output.sent]
    return said


def test_greetings_say_what_differs_only(tmp_path: Path) -> None:
    brokers = {"a": _broker("a", "b"), "b": _broker("b", "a")}
    assert _exchange(brokers) == 0
    for name, broker in brokers.items():
        broker.disconnect("ab".replace(name, ""))
    texts = [{"op": "subscribe", "id": f"s{n}", "expression": f"x > {n}"} for n in range(5_000)]
    records = [record_from_dict(one, brokers["a"].schema) for one in texts]
    brokers["a"].receive("", records)
    assert _exchange(brokers) == 5_000
    assert brokers["b"].interests_of("a") == brokers["a"].links["b"].policy.announced
    start = time.perf_counter()
    assert _exchange(brokers) == 0, "nothing has changed"
    took = time.perf_counter() - start
    print(f"5,000 interests unchanged: {took * 1000:.1f} ms")
    for name, broker in brokers.items():
        broker.disconnect("ab".replace(name, ""))
    changed = record_from_dict({**texts[7], "expression": "x > 9999"}, brokers["a"].schema)
    assert isinstance(changed, Subscribe)
    brokers["a"].receive("", [changed])
    assert 1 <= _exchange(brokers) <= 60, "the buckets that differ"
    assert brokers["b"].interests_of("a") == brokers["a"].links["b"].policy.announced
    event = record_from_dict({"op": "publish", "id": "e", "x": 3, "until": 60}, brokers["b"].schema)
    brokers["b"].disconnect("a")
    brokers["b"].receive("", [event])
    _exchange(brokers)
    assert "e" in brokers["a"].tables.events, "what it lacks is sent, though nothing else differs"


def test_a_store_of_the_version_before_links_is_brought_up_to_date(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"))
    brokers.feed("a", subscribe("s", "x > 0"), {"op": "publish", "id": "e", "x": 1, "until": 9e8})
    brokers.close()
    with sqlite3.connect(tmp_path / "a" / "service.db") as file:
        for table in ("links", "link_outbox", "announced", "holders"):
            file.execute(f"DROP TABLE {table}")
        file.execute("ALTER TABLE clients DROP COLUMN used")
        file.execute("UPDATE facts SET fact = '1' WHERE name = 'service version'")
        file.execute("DELETE FROM facts WHERE name IN ('neighbours', 'instance')")
    file.close()
    for name in "ab":
        brokers.open(name)
    brokers.connections.clear()
    brokers.run_until_idle()
    assert brokers.delivered() == [("s", "e", "added")]
    brokers.feed("b", {"op": "publish", "id": "f", "x": 1})
    brokers.run_until_idle()
    assert len(brokers.delivered()) == 2
    brokers.close()


def test_hostile_frames_end_a_connection_and_nothing_else(tmp_path: Path) -> None:
    brokers = linked(tmp_path, ("a", "b"))
    seeded = random.Random(5)
    hello = LinkSession(brokers.cores["a"].links, is_dialler=True).begin()[0]
    frames = [hello, *brokers.connections["a", "b"].sessions[0].begin()]
    for _ in range(400):
        raw = bytearray(seeded.choice(frames))
        for _ in range(seeded.randint(1, 8)):
            raw[seeded.randrange(len(raw))] = seeded.randrange(256)
        session = LinkSession(brokers.cores["b"].links, is_dialler=False)
        with suppress(LinkRefusedError):
            session.take(bytes(raw[: seeded.randint(1, len(raw))]))
        session.end(1000, "")
    with pytest.raises(LinkRefusedError):
        Assembler().take(b"\7")
    brokers.connections.clear()
    brokers.feed("b", subscribe("s", "x > 0"))
    brokers.run_until_idle()
    brokers.feed("a", {"op": "publish", "id": "e", "x": 1})
    brokers.run_until_idle()
    assert brokers.delivered() == [("s", "e", "added")]
    brokers.close()
