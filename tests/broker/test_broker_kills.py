"""Processes that hold overlays are killed: nothing is lost, and what comes twice is known."""

import json
import os
import subprocess
import sys

import pytest

#: In a soak there are hundreds of them.
LIVES = max(100, int(os.environ.get("STENTOR_CRASHES", "0")))


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_moment_an_overlay_loses_nothing(tmp_path, seed):
    """Each life has another tree and other policies; every second of them is killed by itself."""
    program = "tests.programs.killed_overlays"
    ended = subprocess.run(
        [sys.executable, "-m", program, str(tmp_path), str(LIVES // 2), str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = json.loads(ended.stdout)
    assert found["lives"] == LIVES // 2
    assert found["plain"] > LIVES, "there was something to lose"
    assert found["twice"] > 0, "and something that was not known to have come"
