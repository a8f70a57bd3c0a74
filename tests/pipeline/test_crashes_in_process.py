"""Killed at any step and started again, a stream leaves the tables of one that never stopped."""

from collections import Counter
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
from tests.programs.stream_in_process import BATCHES, history

PROGRAM = "tests.programs.stream_in_process"
pytestmark = pytest.mark.xdist_group("killed in process")  # all runs are done at once
_random = Random("two kills in a row")
_AGAIN = [point for point in FAILPOINTS if point != "table-created"]  # that happens once
KILLS = [(point, _random.choice(_AGAIN)) for point in FAILPOINTS]

Crashed = dict[tuple[str, ...], tuple[Path, list[bool]]]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Crashed:
    """For each of KILLS, and for none, the folder and which of the runs in it were killed."""
    every = [(), *KILLS]
    folders = [tmp_path_factory.mktemp("stream") for _ in every]
    killed = killed_runs(PROGRAM, zip(folders, every, strict=True))
    return dict(zip(every, zip(folders, killed, strict=True), strict=True))


def content(path: Path) -> dict[str, Counter[str]]:
    """All rows of all tables, and how often each is there."""
    return {
        name: Counter(map(repr, DeltaTable(path / "tables" / name).to_pyarrow_table().to_pylist()))
        for name in TABLES
    }


def test_a_stream_that_is_never_killed_delivers_what_the_oracle_says(crashed: Crashed) -> None:
    path, killed = crashed[()]
    assert killed == [False]
    rows, refused = expected(history(), None)
    assert deliveries(path) == rows
    assert len(rows) > 50
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
