"""An engine in an event loop: the same answers, one thread, the calls of a moment together."""

import asyncio
import random
import threading
import warnings

import pyarrow as pa
import pytest
from hypothesis import given

import stentor
from stentor import aio
from stentor.errors import StentorError
from stentor.wire.records import record_to_dict
from tests.support import grid, strategies

pytestmark = pytest.mark.filterwarnings("ignore::stentor.errors.NeverMatchesWarning")


def as_call(record):
    """The method, and what it is given, that does what *record* does."""
    raw = record_to_dict(record)
    op = raw.pop("op")
    settings = {name: raw.pop(name) for name in ("time",) if name in raw}
    if op in ("publish", "update"):
        return op, (raw,), settings
    if op == "subscribe":
        settings |= {name: raw[name] for name in raw if name not in ("id", "expression")}
        return op, (raw["id"], raw["expression"]), settings
    return op, (raw["id"], raw["at"]) if op == "move" else (raw["id"],), settings


def answered(call):
    try:
        return call()
    except StentorError as error:
        return type(error), str(error)


async def awaited(call):
    try:
        return await call
    except StentorError as error:
        return type(error), str(error)


@given(history=strategies.histories(max_size=20))
def test_calls_of_one_moment_have_the_answers_of_single_calls(history):
    plain = stentor.Engine(schema=grid.schema(), clock=None)
    expected = []
    for record in history:
        method, args, settings = as_call(record)
        expected.append(answered(lambda m=method, a=args, s=settings: getattr(plain, m)(*a, **s)))

    async def main():
        async with aio.Engine(schema=grid.schema(), clock=None) as engine:
            calls = [as_call(record) for record in history]
            found = await asyncio.gather(
                *(awaited(getattr(engine, m)(*a, **s)) for m, a, s in calls)
            )
            return found, await engine.stats()

    found, stats = asyncio.run(main())
    assert found == expected
    assert stats["records"] == plain.stats()["records"]


def test_a_bad_call_is_its_own_and_the_others_go_on():
    async def main():
        async with aio.Engine(clock=None) as engine:
            answers = await asyncio.gather(
                engine.subscribe("ana", "price < 3", owner="o"),
                engine.subscribe("bo", "price <"),
                engine.subscribe("cy", "price = 'x'"),
                engine.publish({"id": "e", "price": 1}),
                engine.publish({"price": 1}),
                engine.publish({"id": "e", "price": 1}, colour="red"),
                engine.move("nobody", (0, 0)),
                engine.update({"id": "f", "price": 2}, until="never"),
                engine.top({"id": "g", "price": 1}),
                return_exceptions=True,
            )
            assert await engine.contains("ana")
            assert await engine.count() == 1
            assert await engine.subscriptions(owner="o") == ["ana"]
            with pytest.raises(AttributeError):
                engine.no_such  # noqa: B018
        with pytest.raises(StentorError, match="closed"):
            await engine.live()
        return answers

    answers = asyncio.run(main())
    assert [isinstance(one, Exception) for one in answers] == [
        *(False, True, True, False, True, True, True, True, False)
    ]
    assert answers[3] == ["ana"]
    assert answers[3].shrunk == []


def test_calls_of_one_moment_are_one_commit(tmp_path):
    async def main():
        engine = await aio.Engine.open(tmp_path / "e", durable=True, fsync=False, clock=None)
        async with engine:
            hold = threading.Event()
            engine._inbox.put((aio.Call("stats", (), {}), *(await held(engine, hold))))
            many = [engine.subscribe(f"s{number}", "price < 3") for number in range(300)]
            asked = asyncio.gather(*many)
            await asyncio.sleep(0)  # all are in the inbox
            hold.set()
            await asked
            assert engine.engine._log.number == 1
        async with await aio.Engine.open(tmp_path / "e", durable=True, clock=None) as engine:
            assert await engine.count() == 300

    async def held(engine, hold):
        stats = engine.engine.stats
        engine.engine.stats = lambda: (hold.wait(60), stats())[1]
        loop = asyncio.get_running_loop()
        return loop.create_future(), loop

    asyncio.run(main())


def test_a_large_table_is_cut_and_reported_as_one(monkeypatch):
    monkeypatch.setattr(aio, "ROWS_AT_ONCE", 7)
    table = pa.table({"id": [f"s{n}" for n in range(40)], "expression": ["price < 3"] * 40})
    events = pa.table({"id": [f"e{n}" for n in range(30)], "price": [float(n) for n in range(30)]})
    plain = stentor.Engine(clock=None)
    expected = [plain.subscribe_batch(table), plain.publish_batch(events), plain.step([{}] * 20)]

    async def main(shape):
        async with aio.Engine(clock=None) as engine:
            first = await engine.subscribe_batch(shape(table))
            second = await engine.publish_batch(shape(events))
            return first, second, await engine.step(iter([{}] * 20))

    for shape in (lambda one: one, lambda one: one.to_pandas()):
        found = asyncio.run(main(shape))
        for one, other in zip(found, expected, strict=True):
            assert len(one) == len(other)
            assert [str(answer) for answer in one] == [str(answer) for answer in other]
            assert one[-1:] == [one[len(one) - 1]]
            for name in ("matches", "changes", "stayed", "rejected"):
                assert getattr(one, name).equals(getattr(other, name)), name
            assert one.never == other.never
            assert one.shrunk == other.shrunk


def test_readers_and_a_writer_see_whole_answers():
    """A pair of subscriptions comes and goes as a whole; nobody ever sees half of it."""

    async def write(engine, rounds):
        for number in range(rounds):
            price = {"expression": f"price < {10 + number % 3}"}
            pair = [{"op": "subscribe", "id": id, **price} for id in ("left", "right")]
            await engine.step(pair)
            if number % 5 == 4:
                await engine.step([{"op": "unsubscribe", "id": id} for id in ("left", "right")])
            await engine.update({"id": f"e{number % 7}", "price": number})

    async def read(engine, done, seed):
        draw, seen = random.Random(seed), set()
        while not done.is_set():
            if draw.random() < 0.5:
                seen.add(tuple(await engine.publish({"id": f"r{seed}", "price": 1})))
            else:
                seen.add(tuple(await engine.subscriptions()))
            live = await engine.live()
            assert live == sorted(set(live))
        return seen

    async def main():
        async with aio.Engine(clock=None) as engine:
            done = asyncio.Event()
            readers = [asyncio.create_task(read(engine, done, seed)) for seed in range(8)]
            await write(engine, 60)
            done.set()
            return set().union(*(await asyncio.gather(*readers)))

    assert asyncio.run(main()) <= {(), ("left", "right")}


def test_the_plain_engine_is_safe_among_threads_and_loops():
    """Two loops of two threads and a plain thread use one engine."""
    engine = stentor.Engine(clock=None)
    shared = aio.Engine(engine=engine)
    wrong = []

    async def use(name):
        for number in range(60):
            await asyncio.gather(
                shared.subscribe(f"{name}{number}", "price < 3"),
                shared.publish({"id": f"{name}{number}", "price": 1}),
            )

    def run(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    def plain():
        for number in range(60):
            engine.subscribe(f"p{number}", "price < 3")
            engine.unsubscribe(f"p{number}")

    works = [lambda: asyncio.run(use("a")), lambda: asyncio.run(use("b")), plain]
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(engine) == 120
    asyncio.run(shared.close())


def test_the_loop_goes_on_while_the_engine_works():
    async def main():
        async with aio.Engine(clock=None) as engine:
            hold, ticks = threading.Event(), 0
            stats = engine.engine.stats
            engine.engine.stats = lambda: (hold.wait(60), stats())[1]
            asked = asyncio.create_task(engine.stats())
            while ticks < 50:
                await asyncio.sleep(0)
                ticks += 1
            assert not asked.done()
            hold.set()
            await asked

    asyncio.run(main())


def test_too_many_waiting_calls_are_refused_and_who_goes_away_is_forgotten():
    async def main():
        async with aio.Engine(clock=None, most_waiting=5) as engine:
            found = await asyncio.gather(
                *(engine.subscribe(f"s{n}", "a = 1") for n in range(500)), return_exceptions=True
            )
            refused = [one for one in found if isinstance(one, StentorError)]
            assert await engine.count() == 500 - len(refused)
            gone = asyncio.create_task(engine.publish({"id": "e", "a": 1}))
            await asyncio.sleep(0)
            gone.cancel()
            assert len(await engine.publish({"id": "f", "a": 1})) == 500 - len(refused)

    asyncio.run(main())


def test_a_contradiction_is_told_in_a_batch_too():
    async def main():
        async with aio.Engine(clock=None) as engine:
            await asyncio.gather(*(engine.subscribe(f"s{n}", "a = 1 AND a = 2") for n in range(20)))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(main())
    assert any("can never match" in str(one.message) for one in told)
