"""A writer of a stream in a store is paused, the next one goes on, and the first one comes back."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import partialmethod
from itertools import count, pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import settings

from stentor.errors import FolderError
from stentor.pipeline.commit import failpoints, housekeeping
from stentor.pipeline.commit.failpoints import FAILPOINTS
from stentor.pipeline.commit.housekeeping import remove_orphans
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.stream import shards
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.delta_log import open_table
from stentor.pipeline.tables.files import TABLES, table_folder
from tests.pipeline.test_crashes_in_process import _is_kept
from tests.programs.stream_in_process import BATCHES, ENDED_AFTER, RECORDS, SETTINGS, end, history
from tests.support.s3 import BUCKET, S3Server

sys.path.insert(0, str(Path(__file__).parent))
from in_process import Stream, canonical

pytestmark = pytest.mark.xdist_group("a store")
_numbers = count()
MANY = 200  # as many examples as a soak tries
_random = Random("writers that were away")
#: What comes seldom within a few batches.
SELDOM = ("segments-folded", "live-joined", "bases-", "table-created", "rows-expired")
TAKES_OVER = ("table-created", "bases-adopted")
#: A pause, and how often that point is passed before it. Tables get columns in their own tests.
PAUSES = [
    (point, 1 if point.startswith(SELDOM) else _random.randint(2, 4))
    for point in FAILPOINTS
    if point != "columns-added"
]
if settings.default.max_examples < MANY:
    PAUSES = _random.sample(PAUSES, 8)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with S3Server(tmp_path_factory.mktemp("s3")).stopped_at_the_end() as running:
        yield running


@pytest.fixture
def machine(server, tmp_path):
    """The stream's folder, as each machine sees it that is named."""
    address = f"s3://{BUCKET}/away-{next(_numbers)}"

    def seen_from(name: str) -> StreamFolder:
        return stream_folder(address, options=server.options, cache=str(tmp_path / name))

    return seen_from


def started(path: StreamFolder) -> Stream:
    records = canonical(history())
    return Stream(path, records.schema.field("attributes").type, **SETTINGS)


def feed(stream: Stream) -> None:
    """The next batch, and what is done beside it."""
    records = canonical(history())
    start = stream.next * RECORDS
    cuts = [start, start + RECORDS // 2, start + RECORDS]
    stream.batch([records.take(pa.array(range(*cut))) for cut in pairwise(cuts)])
    stream.wait_for_bases()
    compaction = stream._housekeeping._compaction
    if compaction is not None:
        compaction.exception()


def goes_on(start: Callable[[], Stream], *, ends: bool = False) -> bool:
    """Whether a writer comes to the last batch; it is shut out otherwise."""
    try:
        writer = start()
        while writer.next < BATCHES:
            feed(writer)
            if ends and writer.next == ENDED_AFTER:
                end(writer)
                writer.start()
        writer.stop()
    except FolderError as error:
        if "another writer" not in str(error):
            raise
        return False
    return True


def kept(path: StreamFolder) -> dict[str, Counter[str]]:
    def rows(name: str) -> list[dict[str, object]]:
        return open_table(table_folder(path, name)).to_pyarrow_table().to_pylist()

    return {
        name: Counter(
            repr(row) for row in rows(name) if name != "deliveries" or _is_kept(row["seq"])
        )
        for name in TABLES
    }


@pytest.fixture(scope="module")
def undisturbed(server, tmp_path_factory):
    """What the tables hold where one writer takes in everything."""
    folder = stream_folder(
        f"s3://{BUCKET}/undisturbed",
        options=server.options,
        cache=str(tmp_path_factory.mktemp("copies")),
    )
    stream = started(folder)
    while stream.next < BATCHES:
        feed(stream)
    stream.stop()
    return kept(folder)


@pytest.mark.parametrize(("point", "visit"), PAUSES)
def test_what_a_successor_has_committed_stays_when_a_paused_writer_comes_back(
    point, visit, machine, undisturbed, monkeypatch
):
    monkeypatch.setattr(
        DeltaTables, "compact", partialmethod(DeltaTables.compact, checkpoint_every=3)
    )
    successors = []

    def succeed(*_):
        """What happens while the first writer is paused."""
        second = started(machine("second"))
        for _ in range(3):
            if second.next < BATCHES - 1:  # the first one wants to commit after it
                feed(second)
        successors.append(second)

    monkeypatch.setattr(failpoints, "_name", point)
    monkeypatch.setattr(failpoints, "_count", str(visit))
    monkeypatch.setattr(failpoints, "_visits", count(1))
    monkeypatch.setattr(failpoints, "os", SimpleNamespace(getpid=os.getpid, kill=succeed))
    first_is_shut_out = not goes_on(
        lambda: started(machine("first")), ends=point == "bases-adopted"
    )
    shards.forget()
    assert len(successors) == 1
    # A writer that is paused before it has taken over, or starts again, is the successor's.
    assert first_is_shut_out == goes_on(successors.pop) == (point not in TAKES_OVER)
    shards.forget()
    third = started(machine("third"))
    while third.next < BATCHES:
        feed(third)
    third.stop()
    third.start()
    third.stop()
    path = machine("fourth")
    assert kept(path) == undisturbed
    last = Commits(path).last()
    assert last is not None
    assert (path / "bases").entries() == sorted(last.bases)
    assert (path / "segments").entries() == sorted(one.name for one in last.segments)
    assert not (path / "work").names()


def test_what_a_later_writer_is_about_to_commit_stays_when_an_earlier_one_recovers(
    machine, monkeypatch
):
    first = started(machine("first"))
    feed(first)
    first.stop()
    path, attributes = machine("third"), canonical(history()).schema.field("attributes").type
    recovering, later = [], []

    def recover(*given):
        """Another writer starts meanwhile, and is in the middle of its first batch."""
        monkeypatch.setattr(housekeeping, "remove_orphans", remove_orphans)
        later.append(Stream(machine("second"), attributes, **SETTINGS))
        commits = later[0]._housekeeping.commits
        commit = commits.commit

        def commit_after_all(manifest):
            recovering.append(remove_orphans(*given))
            commit(manifest)

        monkeypatch.setattr(commits, "commit", commit_after_all)
        feed(later[0])
        monkeypatch.undo()
        assert len(recovering) == 1

    monkeypatch.setattr(housekeeping, "remove_orphans", recover)
    earlier = started(machine("first"))
    with pytest.raises(FolderError, match="another writer"):
        feed(earlier)
    later[0].stop()
    shards.forget()
    third = started(path)
    while third.next < BATCHES:
        feed(third)
    third.stop()
    last = Commits(path).last()
    assert last is not None
    assert (path / "live").entries() == sorted(
        name for one in last.live for name in (one.name, one.ended) if name
    )


def test_a_folder_of_an_older_release_goes_on_and_is_tidied_up(machine, undisturbed, tmp_path):
    here = stream_folder(tmp_path / "local")
    first = started(here)  # names in a local folder tell no epoch, as in older releases
    for _ in range(3):
        feed(first)
    first.stop()
    (here / "segments").new("2-0123456789abcdef").write_bytes(b"of a batch that failed")
    store = machine("first").store
    for name in here.names():
        store.put(name, here.file(name))
    second = started(machine("first"))
    assert "2-0123456789abcdef" not in (machine("first") / "segments").entries()
    while second.next < BATCHES:
        feed(second)
    second.stop()
    assert kept(machine("third")) == undisturbed
    assert all("w" in name for name in (machine("third") / "segments").entries())
