"""The page on own experiments does what it says."""

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType

from stentor_lab.baselines.rivals import RIVALS

PAGE = Path(__file__).parents[1] / "own_experiments.md"


def test_the_page_on_own_experiments_runs():
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    module = ModuleType("page_of_own_experiments")
    sys.modules[module.__name__] = module
    known = dict(RIVALS)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            for block in blocks:
                exec(compile(block, str(PAGE), "exec"), module.__dict__)
    finally:
        RIVALS.clear()
        RIVALS.update(known)
        sys.modules.pop("own_structures", None)
        del sys.modules[module.__name__]
    assert printed.getvalue() == expected
