"""Kills of drivers and workers at random: STENTOR_CRASHES of them, those of the suite counted in.

`STENTOR_SEED` repeats what a run has printed.
"""

import os
from pathlib import Path
from random import Random

import pytest

CRASHES = int(os.environ.get("STENTOR_CRASHES", "12")) - 12
SEED = os.environ.get("STENTOR_SEED", "")


@pytest.mark.xdist_group("spark-crash")
@pytest.mark.skipif(CRASHES <= 0, reason="NOT RUN: crashes at random; `make soak` has 200 of them")
def test_after_many_kills_the_tables_are_those_of_one_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark")
    from tests.programs.afternoons import found_tables, in_any_batches
    from tests.programs.crashes import History, Kill
    from tests.programs.leftovers import leftovers

    kills = histories = 0
    while kills < CRASHES:
        seed = int(SEED) if SEED else Random().randrange(1 << 32)
        with capsys.disabled():
            print(f"\n{kills} of {CRASHES} kills; now STENTOR_SEED={seed}")
        random = Random(seed)
        folder = tmp_path / str(histories)
        history = History(folder, seed)
        histories += 1
        is_done = False
        while not is_done:
            is_done, killed = history.run(Kill.drawn(random))
            kills += killed
        assert in_any_batches(found_tables(history.path)) == history.expected(), seed
        assert not leftovers(history.path), seed
