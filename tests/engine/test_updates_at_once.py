"""Updates by the batch, which need no plan: the answers and the state of single calls."""

from contextlib import suppress

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import stentor

IDS = [f"e{number}" for number in range(6)]
WISHES = ("price < 3", "price > 2", "price = 4 OR size = 1", "size IS NULL")


@st.composite
def rounds(draw):
    """Batches of updates, and what else happens between them."""
    found, time = [], 0
    for _ in range(draw(st.integers(1, 5))):
        time += draw(st.integers(0, 3))
        rows = [
            {
                "id": draw(st.sampled_from(IDS)),
                "price": float(draw(st.integers(0, 5))),
                "size": draw(st.sampled_from([None, 1.0])),
                "until": draw(st.sampled_from([None, time + 2, time + 9, time])),
                "time": time + draw(st.integers(0, 1)),
            }
            for _ in range(draw(st.integers(0, 6)))
        ]
        between = draw(st.sampled_from([None, "subscribe", "publish", "withdraw", "region"]))
        found.append((rows, between, draw(st.booleans()), time))
    return found


@given(history=rounds())
def test_a_batch_of_updates_is_one_after_another(history):
    whole, single = (stentor.Engine(clock=None) for _ in range(2))
    for engine in (whole, single):
        for number, text in enumerate(WISHES):
            engine.subscribe(f"s{number}", text, at=(0, 0), time=0)
    for rows, between, is_table, time in history:
        plain = [{name: one for name, one in row.items() if one is not None} for row in rows]
        given_rows = pa.Table.from_pylist(rows, SCHEMA) if is_table else plain
        answers = [str(one) for one in whole.update_batch(given_rows)]
        expected = []
        for row in plain:
            try:
                expected.append(str(single.update(row)))
            except stentor.StentorError as error:
                expected.append(str(error))
        assert answers == expected
        for engine in (whole, single):
            if between == "subscribe":
                engine.subscribe("s1", "price < 5", time=time)
            elif between == "publish":
                with suppress(stentor.StentorError):
                    engine.publish({"id": "p", "price": 3}, until=time + 5, time=time)
            elif between == "withdraw" and engine.live():
                with suppress(stentor.StentorError):
                    engine.withdraw(engine.live()[0], time=time)
            elif between == "region":
                engine.safe_region("s0")
        assert whole.live() == single.live()
        assert [whole.event(id) for id in whole.live()] == [
            single.event(id) for id in single.live()
        ]
        assert whole.stats()["records"] == single.stats()["records"]
        whole._state.index.check()


SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("price", pa.float64()),
        ("size", pa.float64()),
        ("until", pa.int64()),
        ("time", pa.int64()),
    ]
)
