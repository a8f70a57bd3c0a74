"""The kernels are plain Python too: a chosen part of the tests passes with the JIT switched off."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CHOSEN = [
    "test_covering_mixed.py",
    "test_encoding_equals_evaluate.py",
    "test_machine.py",
    "test_step.py",
    "test_table.py",
    "test_hashing.py",
]


def test_chosen_tests_pass_without_the_jit():
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]
        + [str(next(HERE.rglob(name))) for name in CHOSEN],
        env=inherited | {"NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "few"},
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_the_jit_is_off_where_it_is_switched_off():
    code = (
        "from stentor.index.verify.predicates import predicate_holds as kernel;"
        "print(hasattr(kernel, 'py_func'))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"NUMBA_DISABLE_JIT": switch},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for switch in ("1", "0")
    ]
    assert found == ["False", "True"]
