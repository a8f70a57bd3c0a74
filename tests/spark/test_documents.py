"""The Python blocks of the documents that need a Spark session."""

from contextlib import redirect_stdout
from io import StringIO

import pytest

from tests.docs.documents import ROOT, blocks

PYTHON = [block for block in blocks("python") if block.name == "spark"]


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_prints_what_the_page_says(block, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = compile("\n" * (block.number - 1) + block.text, str(ROOT / block.page), "exec")
    printed = StringIO()
    with redirect_stdout(printed):
        exec(code, {"__name__": "__main__"})
    assert printed.getvalue() == (block.output or "")
