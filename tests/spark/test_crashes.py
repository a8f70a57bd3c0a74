"""Drivers and workers of real Spark are killed: nothing is lost, nothing doubled, nothing left."""

from pathlib import Path

import pytest

from tests.programs.afternoons import found_tables, in_any_batches
from tests.programs.crashes import History, Kill
from tests.programs.leftovers import leftovers

#: In an order in which each is met: a driver recovers from one and dies at the next.
KILLS = [
    Kill(at="table-created"),
    Kill(at="records-read"),
    Kill(at="changes-settled"),
    Kill(at="events-matched"),
    Kill(at="manifest-written"),
    Kill(at="manifest-linked"),
    Kill(at="delta-linked"),
    Kill(at="segments-folded"),
    Kill(after=0.5),
    Kill(at="bases-built"),
    Kill(at="files-merged"),
]


@pytest.mark.xdist_group("spark-crash")
def test_after_twelve_kills_the_tables_are_those_of_one_engine(tmp_path: Path) -> None:
    history = History(tmp_path, seed=5)
    for kill in KILLS:
        assert history.run(kill) == (False, 1), kill
    assert history.run(Kill(worker_after=1)) == (True, 1)
    assert in_any_batches(found_tables(history.path)) == history.expected()
    assert not leftovers(history.path)
