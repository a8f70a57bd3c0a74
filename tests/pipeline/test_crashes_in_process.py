"""Killed at any step and started again, a stream leaves the tables of one that never stopped."""

from collections import Counter
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from stentor.pipeline.commit.failpoints import FAILPOINTS
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.tables.files import TABLES
from tests.pipeline.test_stream_equals_engine import deliveries, expected
from tests.programs.killed_runs import killed_runs
from tests.programs.leftovers import leftovers
from tests.programs.stream_in_process import BATCHES, SETTINGS, history

PROGRAM = "tests.programs.stream_in_process"
pytestmark = pytest.mark.xdist_group("killed in process")  # all runs are done at once
_random = Random("a kill, and another one")
# Tables of an older release get their columns in the tests of tables.
POINTS = [point for point in FAILPOINTS if point != "columns-added"]
_AGAIN = [point for point in POINTS if point != "table-created"]  # that happens once
KILLS = [(point, _random.choice(_AGAIN)) for point in POINTS]

Crashed = dict[tuple[str, ...], tuple[Path, list[bool]]]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Crashed:
    """For each of KILLS, and for none, the folder and which of the runs in it were killed."""
    every = [(), *KILLS]
    folders = [tmp_path_factory.mktemp("stream") for _ in every]
    killed = killed_runs(PROGRAM, zip(folders, every, strict=True))
    return dict(zip(every, zip(folders, killed, strict=True), strict=True))


def content(path: Path) -> dict[str, Counter[str]]:
    """All rows of all tables that are to be kept, and how often each is there."""
    return {
        name: Counter(
            repr(row)
            for row in DeltaTable(path / "tables" / name).to_pyarrow_table().to_pylist()
            if name != "deliveries" or _is_kept(row["seq"])
        )
        for name in TABLES
    }


def _is_kept(seq: int) -> bool:
    """Whether deliveries of this record are never old enough to go."""
    times = list(accumulate((record.time or 0 for record in history()), max))
    return times[seq - 1] >= times[-1] - SETTINGS["keep_deliveries"] // timedelta(microseconds=1)


def test_a_stream_that_is_never_killed_delivers_what_the_oracle_says(crashed: Crashed) -> None:
    path, killed = crashed[()]
    assert killed == [False]
    rows, refused = expected(history(), None)
    found = deliveries(path)
    assert len(rows) > 50
    assert len(found) < len(rows)  # some are old enough to go
    assert not Counter(found) - Counter(rows)
    assert not Counter(row for row in rows if _is_kept(row[3])) - Counter(found)
    assert content(path)["rejected"].total() == refused > 5


@pytest.mark.parametrize("kills", KILLS, ids="+".join)
def test_killed_and_started_again_nothing_is_lost_doubled_or_left(
    kills: tuple[str, ...], crashed: Crashed
) -> None:
    path, killed = crashed[kills]
    assert killed == [True] * len(kills) + [False]
    assert content(path) == content(crashed[()][0])
    last = Commits(path).last()
    assert last is not None
    assert last.batch == BATCHES - 1
    assert not leftovers(path)
