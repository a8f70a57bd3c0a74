"""However records are cut into micro-batches, the tables hold what one engine would say."""

import sys
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.errors import StentorError
from stentor.language.parser import parse
from stentor.model import Changes, Constant, Event, EventChanges, Kind, Subscription
from stentor.model.record import Publish, Subscribe, Withdraw
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.stream import micro_batch, read_records
from stentor.pipeline.stream.settings import FrameSettings
from tests.support import grid, strategies
from tests.support.oracle import Oracle

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


def expected(history, top, *, stayed=False):
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
        elif isinstance(answer, EventChanges):
            event = record.id if isinstance(record, Withdraw) else record.event.id
            told = ("entered", "left", "stayed") if stayed else ("entered", "left")
            rows += [(event, id, one, seq) for one in told for id in getattr(answer, one)]
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
    stayed=st.booleans(),
)
@settings(max_examples=settings.default.max_examples // 4)
def test_the_tables_equal_the_engine_however_the_records_are_cut(
    shards, top, index, cut, few, fold, is_fine, stayed
):
    history, batches = cut
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if is_fine:  # a part, and a chunk, of every record
            patch.setattr(read_records, "PART_ROWS", 1)
            patch.setattr(micro_batch, "CHUNK_EVENTS", 1)
        path = Path(folder)
        chosen = {"few_changes": few, "fold_after": fold, "merge_least": 2, "merge_share": 0.01}
        chosen["stayed"] = stayed
        run(path, history, batches, plan="auto", shards=shards, top=top, index=index, **chosen)
        rows, refused = expected(history, top, stayed=stayed)
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


CRASH = "crash"


@st.composite
def paced_histories(draw):
    """A history in several sources of one order, each read at a pace of its own."""
    history = draw(strategies.histories(max_size=24))
    random = Random(draw(st.integers(0, 10_000)))
    sources = random.randint(2, 3)
    lanes = [[] for _ in range(sources)]
    for place in range(len(history)):
        random.choice(lanes).append(place)
    batches = []
    while any(lanes):
        batch = []
        for number, lane in enumerate(lanes):
            count = random.choice([0, 1, len(lane) // 2, len(lane)])
            batch.append((number, lane[:count]))
            lanes[number] = lane[count:]
        batches += [batch, *random.choice([[], [], [RESTART], [CRASH]])]
    return history, sources, batches


@given(paced=paced_histories(), shards=st.sampled_from([1, 2]))
@settings(max_examples=settings.default.max_examples // 20)
def test_sources_of_one_order_may_be_read_at_any_pace(paced, shards):
    history, sources, batches = paced
    frames = [FrameSettings(f"source {number}", None, 1.0) for number in range(sources)]
    with TemporaryDirectory() as folder:
        path = Path(folder)
        records = canonical(history)
        of = records.schema.field("attributes").type
        stream = Stream(path, of, frames=frames, shards=shards, merge_least=2, merge_share=0.01)
        for number, batch in enumerate(batches):
            if batch == RESTART:
                stream.stop()
                stream.start()
            elif batch != CRASH:
                parts = [in_lane(records, *lane) for lane in batch]
                if batches[number + 1 : number + 2] == [CRASH]:
                    with pytest.raises(RuntimeError), failing(stream):
                        stream.batch(parts)
                    stream.stop()
                    stream.start()
                stream.batch(parts)
        stream.loop.flush()
        stream.stop()
        rows, refused = expected(history, None)
        assert deliveries(path) == rows
        assert table(path, "rejected").num_rows == refused


def test_partitions_of_a_topic_wait_for_one_another(tmp_path):
    events = [Publish(Event(f"e{n}", {"price": Constant(Kind.NUMBER, 1.0)})) for n in range(8)]
    records = canonical(events)
    of = records.schema.field("attributes").type
    stream = Stream(tmp_path, of, frames=[FrameSettings("topic")])
    for zero, one in (([0], [1]), ([2, 4, 6], []), ([], [3]), ([], [5, 7])):
        parts = [in_lane(records, 0, zero, "kafka:t/0"), in_lane(records, 0, one, "kafka:t/1")]
        stream.batch(parts)
    stream.stop()
    assert table(tmp_path, "rejected").num_rows == 0
    assert Commits(tmp_path).last().order == 6


def in_lane(records, number, places, source=None):
    """The records at these *places*, as they come in the frame *number*."""
    own = records.take(pa.array(places, pa.int64()))
    sources = pa.array([source or f"file {number}"] * len(own), pa.string())
    own = own.set_column(own.column_names.index("source"), "source", sources)
    return own.append_column("frame", pa.array([number] * len(own), pa.int32()))


@contextmanager
def failing(stream):
    """A stream that is killed when everything of a batch is done but its commit."""
    commits = stream.loop._commits

    def commit(manifest):
        raise RuntimeError("killed")

    commits.commit = commit
    try:
        yield
    finally:
        del commits.commit


def test_records_wait_for_a_slower_source_and_no_longer_than_it_is_idle(tmp_path):
    people = [
        Subscribe(Subscription(f"s{n}", parse("price > 0", schema=grid.schema()))) for n in range(4)
    ]
    events = [Publish(Event(f"e{n}", {"price": Constant(Kind.NUMBER, 1.0)})) for n in range(4)]
    history = [one for pair in zip(people, events, strict=True) for one in pair]
    records = canonical(history)
    frames = [FrameSettings("people"), FrameSettings("events")]
    idle = timedelta(seconds=5)
    of = records.schema.field("attributes").type
    stream = Stream(tmp_path, of, frames=frames, idle=idle)

    def batch(people, events, second):
        parts = [in_lane(records, 0, people)]
        parts.append(in_lane(records, 1, events))
        moment = pa.scalar(second * 1_000_000, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        parts = [
            part.set_column(
                part.column_names.index("batch_time"), "batch_time", pa.repeat(moment, len(part))
            )
            for part in parts
        ]
        stream.batch(parts)
        return Commits(tmp_path).last()

    assert [one.rows for one in batch([], [1, 3], 0).waiting] == [2]  # nobody has subscribed yet
    assert deliveries(tmp_path) == []
    last = batch([0, 2], [], 1)
    assert [one.rows for one in last.waiting] == [1]
    assert deliveries(tmp_path) == [("e0", "s0", "matched", 2)]
    assert sorted(one.name for one in (tmp_path / "waiting").iterdir()) == sorted(
        name for one in last.waiting for name in one.files
    )
    assert sum(one.rows for one in batch([], [5], 2).waiting) == 2
    assert not batch([], [7], 8).waiting  # the people have been silent for more than five seconds
    assert len(deliveries(tmp_path)) == 1 + 2 + 2 + 2
    assert not list((tmp_path / "waiting").iterdir())
    batch([4], [], 9)  # and come too late now
    stream.stop()
    ((reason),) = table(tmp_path, "rejected")["reason"].to_pylist()
    assert "comes too late" in reason


def test_a_source_may_be_out_of_order_by_the_lateness_that_is_allowed(tmp_path):
    events = [Publish(Event(f"e{n}", {"price": Constant(Kind.NUMBER, 1.0)})) for n in range(9)]
    subscription = Subscription("ana", parse("price > 0", schema=grid.schema()))
    records = canonical([Subscribe(subscription), *events])
    of = records.schema.field("attributes").type
    stream = Stream(tmp_path, of, frames=[FrameSettings("all", None, 1.0)], lateness=3)
    for places in ([0, 3, 2], [5, 1, 4], [9, 8, 5], [7, 6]):
        stream.batch([in_lane(records, 0, places)])
    stream.loop.flush()
    stream.stop()
    assert {event for event, *_ in deliveries(tmp_path)} == {f"e{n}" for n in range(9)}
