"""However records are cut into micro-batches, the tables hold what one engine would say."""

import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.errors import StentorError
from stentor.language.parser import parse
from stentor.model import Changes, Constant, Event, Kind, Subscription
from stentor.model.record import Publish, Subscribe
from stentor.pipeline.stream import micro_batch, reading
from stentor.testing import grid, strategies
from stentor.testing.oracle import Oracle

sys.path.insert(0, str(Path(__file__).parent))
from in_process import Stream, canonical

RESTART = "restart"


@st.composite
def cut_histories(draw):
    """A history, and the same in micro-batches of partitions, with restarts between them."""
    history = draw(strategies.histories(max_size=24))
    cuts = sorted(draw(st.lists(st.integers(0, len(history)), max_size=5)))
    batches = []
    for start, stop in pairwise([0, *cuts, len(history)]):
        orders = draw(st.permutations(range(start, stop)))
        middle = draw(st.integers(0, len(orders)))
        batches.append([orders[:middle], orders[middle:]])
        if draw(st.integers(0, 3)) == 0:
            batches.append(RESTART)
    return history, batches


def expected(history, top):
    """The rows of deliveries that the oracle's answers stand for, and how many were refused."""
    answers = Oracle(schema=grid.schema()).answers(history, top=top)
    rows, refused = [], 0
    for seq, (record, answer) in enumerate(zip(history, answers, strict=True), start=1):
        if isinstance(answer, StentorError):
            refused += 1
        elif isinstance(answer, Changes):
            id = record.subscription.id if hasattr(record, "subscription") else record.id
            rows += [(event, id, "added", seq) for event in answer.added]
            rows += [(event, id, "removed", seq) for event in answer.removed]
        else:
            assert isinstance(record, Publish)
            rows += [(record.event.id, id, "matched", seq) for id in answer]
    return sorted(rows), refused


def run(path, history, batches, **chosen):
    records = canonical(history)
    stream = Stream(path, records.schema.field("attributes").type, **chosen)
    for batch in batches:
        if batch == RESTART:
            stream.stop()
            stream.start()
        else:
            stream.batch([records.take(pa.array(part, pa.int64())) for part in batch])
    stream.stop()


def table(path, name):
    return DeltaTable(path / "tables" / name).to_pyarrow_table()


def deliveries(path):
    rows = table(path, "deliveries").to_pylist()
    return sorted((row["event"], row["subscription"], row["change"], row["seq"]) for row in rows)


@pytest.mark.parametrize(
    ("shards", "top", "index"),
    [(1, None, "ap_tree"), (1, 2, "mo_tree"), (3, None, "auto"), (10, 2, "be_star_tree")],
)
@given(
    cut=cut_histories(),
    few=st.sampled_from([1, 1000]),
    fold=st.sampled_from([2, 16]),
    is_fine=st.booleans(),
)
@settings(max_examples=settings.default.max_examples // 4)
def test_the_tables_equal_the_engine_however_the_records_are_cut(
    shards, top, index, cut, few, fold, is_fine
):
    history, batches = cut
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if is_fine:  # a part, and a chunk, of every record
            patch.setattr(reading, "PART_ROWS", 1)
            patch.setattr(micro_batch, "CHUNK_EVENTS", 1)
        path = Path(folder)
        chosen = {"few_changes": few, "fold_after": fold, "merge_least": 2, "merge_share": 0.01}
        run(path, history, batches, plan="auto", shards=shards, top=top, index=index, **chosen)
        rows, refused = expected(history, top)
        assert deliveries(path) == rows
        assert table(path, "rejected").num_rows == refused


def test_a_segment_that_was_folded_is_not_applied_again(tmp_path):
    ana, bo, nobody = (
        Subscribe(Subscription(id, parse(text, schema=grid.schema())))
        for id, text in (("ana", "price > 0"), ("cé", "price > 0"), ("ana", "FALSE"))
    )
    event = Publish(Event("e1", {"price": Constant(Kind.NUMBER, 1.0)}))
    run(tmp_path, [ana, bo, nobody, event], [[[0, 1]], [[]], [[2, 3]]], few_changes=1, fold_after=2)
    assert deliveries(tmp_path) == [("e1", "cé", "matched", 4)]
