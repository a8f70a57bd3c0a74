"""Kills of a durable engine between any two of its calls: fifty for each of STENTOR_CRASHES.

`STENTOR_SEED` repeats what a run has printed.
"""

import os
from pathlib import Path
from random import Random

import pytest

from tests.programs import killed_engines

KILLS = 50 * (int(os.environ.get("STENTOR_CRASHES", "0")))
SEED = os.environ.get("STENTOR_SEED", "")
_AT_ONCE = 200


@pytest.mark.skipif(KILLS <= 0, reason="NOT RUN: kills of engines; `make soak` has 10,000 of them")
def test_after_many_kills_all_that_was_answered_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kills in range(0, KILLS, _AT_ONCE):
        seed = int(SEED) if SEED else Random().randrange(1 << 32)
        with capsys.disabled():
            print(f"\n{kills} of {KILLS} kills; now STENTOR_SEED={seed}")
        killed_engines.main(tmp_path / str(kills), min(_AT_ONCE, KILLS - kills), seed)
