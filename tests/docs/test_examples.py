"""Every Python block, every command and every record of the documents."""

import re
import shlex
import sys
import tomllib
import venv
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from typer import Typer
from typer.main import get_command

from stentor.cli.inputs import run_to_exit
from stentor.model import Schema
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings
from stentor.wire.rejected import Rejected
from tests.docs.documents import DATA, KINDS, ROOT, Block, blocks, enter, programs

#: Commands that take long by intention: their arguments are read, and no more.
SLOW = ("bench", "demo", "reproduce", "size", "stream", "warm")
#: What a new user begins with.
ENVIRONMENT = ("python3 -m venv .venv", ". .venv/bin/activate")

#: What needs Spark or Kafka is run by tests/spark/test_documents.py.
COMMANDS = [block for block in blocks("sh") if not block.name]
RECORDS = [block for block in blocks("json", "jsonl") if not block.name]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert not [str(block) for block in blocks() if block.kind not in KINDS]
    printing = [block for block in blocks() if block.output is not None]
    assert not [str(block) for block in printing if block.kind not in ("python", "sh")]


@pytest.mark.parametrize("program", programs(), ids=lambda program: str(program[0]))
@pytest.mark.filterwarnings("ignore:Using `httpx`")  # Starlette's, of its own test client
def test_python_prints_what_the_page_says(
    program: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _enter(tmp_path, monkeypatch)
    names = {"__name__": "__main__"}
    for block in program:
        assert block.page == program[0].page
        # Empty lines in front: a traceback then names the line of the page.
        code = compile("\n" * (block.number - 1) + block.text, str(ROOT / block.page), "exec")
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == (block.output or ""), str(block)


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_commands_do_what_the_page_says(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _enter(tmp_path, monkeypatch)
    for line in block.lines:
        program, *arguments = shlex.split(line.text, comments=True) or [""]
        if program in ("stentor", "stentor-lab"):
            exit_code = _run(program, arguments, monkeypatch)
            expected = re.search(r"# .*exit code (\d+)", line.text)
            assert exit_code == (int(expected[1]) if expected else 0), line
        elif line.text == ENVIRONMENT[0]:
            venv.create(".venv")
        elif line.text == ENVIRONMENT[1]:
            assert Path(".venv/bin/activate").is_file()
        elif program == "make":
            assert {one for one in arguments if "=" not in one} <= _targets(), line
        elif program == "pip":
            named = re.findall(r"\.\[([\w,]+)\]", line.text)
            assert {one for extras in named for one in extras.split(",")} <= _extras(), line
        else:
            assert not program, f"{line}: nobody checks this program"
    if block.output is not None:
        assert capsys.readouterr().out == block.output


@pytest.mark.parametrize("page", sorted(DATA.parent.glob("*.[mi]*")), ids=lambda page: page.name)
def test_a_tutorial_begins_with_an_environment_of_its_own(page: Path) -> None:
    text = page.read_text("utf-8").replace('\\n",\n    "', "\n")
    first = text.partition("```sh\n")[2].splitlines()
    assert tuple(first[:2]) == ENVIRONMENT
    assert first[2].startswith("pip install ")


def _enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in *folder*, which holds the files that the documents show."""
    monkeypatch.chdir(folder)
    enter(folder)


def _run(program: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run *program* with these *arguments*, or only read them; its exit code."""
    app = _app(program)

    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    if arguments[0] in SLOW:
        command = get_command(app).commands[arguments[0]]  # type: ignore[attr-defined]
        command.make_context(arguments[0], arguments[1:])
        return 0
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    with pytest.raises(SystemExit) as exited:
        run_to_exit(app)
    return int(exited.value.code or 0)


def _app(program: str) -> Typer:
    if program == "stentor":
        from stentor.cli.app import app
    else:
        from stentor_lab.cli import app
    return app


def _targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def _extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return set(project["optional-dependencies"])


@pytest.mark.parametrize("block", RECORDS, ids=str)
def test_every_record_of_the_page_is_read(block: Block, tmp_path: Path) -> None:
    path = tmp_path / f"example.{block.kind}"
    path.write_text(block.text, "utf-8")
    settings = ReadSettings(default_op="publish")
    found = [one for chunk in open_records(path, Schema(), settings) for one in chunk.records]
    assert found
    assert not [one.reason for one in found if isinstance(one, Rejected)]


@pytest.mark.parametrize("block", [one for one in blocks("toml") if not one.name], ids=str)
def test_every_file_of_settings_loads(block: Block, tmp_path: Path) -> None:
    from stentor.pipeline.config.file import load

    path = tmp_path / "stentor.toml"
    path.write_text(block.text, "utf-8")
    if "[[source]]" in block.text:
        assert load(path).path == tmp_path / "out"
    else:
        _read_as_of_a_service(block, tmp_path)


def _read_as_of_a_service(block: Block, folder: Path) -> None:
    """Each key is known and of its type; files that it names need not be there."""
    from stentor.service.settings import TomlSection, _read

    mistakes: list[str] = []
    _read(TomlSection("", tomllib.loads(block.text), mistakes), folder)
    assert mistakes == []
