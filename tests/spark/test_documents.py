"""The Python blocks of the documents that need a Spark session, and pages that need Kafka too."""

import shlex
from contextlib import redirect_stdout
from io import StringIO

import pytest
from typer.testing import CliRunner

from stentor.cli import app as cli
from tests.docs.documents import PAGES, ROOT, Block, blocks, blocks_of, enter

PYTHON = [block for block in blocks("python") if block.name == "spark"]
WITH_KAFKA = [page for page in PAGES if any(one.name == "kafka" for one in blocks_of(page))]


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_prints_what_the_page_says(block, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert printed_by(block) == (block.output or "")


@pytest.mark.parametrize("page", WITH_KAFKA, ids=lambda page: page.stem)
def test_a_page_with_kafka_does_what_it_says_from_top_to_bottom(
    page, spark, servers, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    enter(tmp_path)
    for block in blocks_of(page):
        here = block._replace(text=block.text.replace("localhost:9092", servers))
        if block.kind == "toml" and block.name:
            (tmp_path / block.name).write_text(here.text, "utf-8")
        elif block.name == "kafka" and block.kind == "python":
            assert printed_by(here) == (block.output or ""), str(block)
        elif block.name == "kafka":
            for line in here.lines:
                ran = CliRunner().invoke(cli.app, shlex.split(line.text)[1:])
                assert ran.exit_code == 0, f"{line}: {ran.output} {ran.exception}"


def printed_by(block: Block) -> str:
    """What *block* prints when it runs by itself."""
    code = compile("\n" * (block.number - 1) + block.text, str(ROOT / block.page), "exec")
    printed = StringIO()
    with redirect_stdout(printed):
        exec(code, {"__name__": "__main__"})
    return printed.getvalue()
