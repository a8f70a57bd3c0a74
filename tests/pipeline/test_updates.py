"""Updates and withdrawals in a stream, by hand: what the tables say of them."""

import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Subscription
from stentor.model.record import Subscribe, Update, Withdraw
from tests.support import grid

sys.path.insert(0, str(Path(__file__).parent))
from in_process import Stream, canonical


def priced(price):
    return Update(Event("e1", {"price": Constant(Kind.NUMBER, float(price))}))


def test_an_event_that_changes_enters_and_leaves_across_batches(tmp_path):
    cheap = Subscribe(Subscription("ana", parse("price < 1", schema=grid.schema())))
    dear = Subscribe(Subscription("bo", parse("price > 1", schema=grid.schema())))
    history = [cheap, priced(0), priced(0), dear, priced(2), Withdraw("e1"), Withdraw("e1")]
    records = canonical(history)
    stream = Stream(tmp_path, records.schema.field("attributes").type, stayed=True)
    for number in range(len(history)):
        stream.batch([records.take(pa.array([number], pa.int64()))])
        stream.stop()
        stream.start()
    stream.stop()
    rows = DeltaTable(tmp_path / "tables" / "deliveries").to_pyarrow_table().to_pylist()
    changes = sorted((row["seq"], row["subscription"], row["change"]) for row in rows)
    assert changes == [
        (2, "ana", "entered"),
        (3, "ana", "stayed"),
        (5, "ana", "left"),
        (5, "bo", "entered"),
        (6, "bo", "left"),
    ]
    [rejected] = DeltaTable(tmp_path / "tables" / "rejected").to_pyarrow_table().to_pylist()
    assert rejected["reason"] == "no live event has the id 'e1'"
    events = DeltaTable(tmp_path / "tables" / "events").to_pyarrow_table().to_pylist()
    assert sorted(row["seq"] for row in events) == [2, 3, 5, 6]
