"""The demonstration: its tables are those of an engine, and what it prints can be run."""

import json
import re
import textwrap
from collections import Counter

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from stentor.cli import app as cli
from stentor.demo.afternoon import KINDS, Afternoon
from stentor.demo.command import ASK
from stentor.demo.folder import prepare
from stentor.engine import Engine
from stentor.errors import FolderError, StentorError
from stentor.model import Changes
from stentor.pipeline.storage.writers import lock_folder

AFTERNOON = Afternoon(people=60, events=30, moves=150, seed=7)
ARGUMENTS = ("demo", "--people", "60", "--events", "30", "--seed", "7", "--folder")


def run(*arguments):
    result = CliRunner().invoke(cli.app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def demo(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "saltmere"
    return folder, run(*ARGUMENTS, str(folder))


def expected():
    """The rows that an engine's answers stand for, and the refused records."""
    records = list(AFTERNOON.records())
    rows, refused = [], 0
    for record, answer in zip(records, Engine(schema=KINDS, clock=None).step(records), strict=True):
        if isinstance(answer, StentorError):
            refused += 1
        elif isinstance(answer, Changes):
            rows += [(event, record["id"], "added") for event in answer.added]
            rows += [(event, record["id"], "removed") for event in answer.removed]
        else:
            rows += [(record["id"], id, "matched") for id in answer]
    return sorted(rows), refused


def table(folder, name):
    return DeltaTable(folder / "pipeline" / "tables" / name).to_pyarrow_table()


def test_the_tables_of_the_demo_equal_one_engine(demo):
    folder, _ = demo
    rows, refused = expected()
    assert rows
    assert refused
    columns = table(folder, "deliveries").select(["event", "subscription", "change"]).to_pylist()
    assert sorted(tuple(row.values()) for row in columns) == rows
    assert table(folder, "rejected").num_rows == refused


def test_the_demo_tells_what_happened_and_draws_it(demo):
    folder, result = demo
    assert result.exit_code == 0
    rows, refused = expected()
    by_change = [sum(row[2] == change for row in rows) for change in ("matched", "added")]
    for part in (
        f"delivered when published{by_change[0]:>12,}",
        f"found by walking up to it{by_change[1]:>11,}",
        "Whose offers were told most",
        "Rejected, and why",
        "One delivery, explained",
        "✓",
    ):
        assert " ".join(part.split()) in " ".join(result.stdout.split())
    assert f"rejected {refused}" in " ".join(result.stdout.split())
    assert (folder / "map.png").stat().st_size > 1000
    block = re.search(r'id="recording">(.*?)</script>', (folder / "map.html").read_text("utf-8"))
    kinds = Counter()
    for kind, *row in json.loads(block[1])["rows"]:
        kinds[kind] += len(row[-1]) if kind >= 4 else 1
    assert [kinds[4], kinds[5]] == by_change


def test_the_numbers_of_the_demo_are_those_of_an_engine_alone(demo, tmp_path):
    alone = run(*ARGUMENTS[:-1], "--embedded", "--picture", str(tmp_path / "map.svg")).stdout
    for line in ("subscriptions at the end", "found by walking", "lost by walking"):
        [one] = [found for found in alone.splitlines() if found.startswith(line)]
        assert " ".join(one.split()) in " ".join(demo[1].stdout.split())


def test_the_lines_that_the_demo_prints_run_as_they_stand(spark, demo):
    folder, result = demo
    pipeline = (folder / "pipeline").resolve()
    shown = ASK.format(folder=folder, pipeline=pipeline)
    assert shown in result.stdout
    code = "\n".join(line[11:] for line in shown.splitlines()[1:])
    exec(textwrap.dedent(code), {})


def test_a_demo_makes_room_for_the_next_and_for_nothing_else(tmp_path):
    config = prepare(tmp_path / "demo", AFTERNOON)
    (tmp_path / "demo" / "pipeline" / "tables").mkdir(parents=True)
    (tmp_path / "demo" / "mine.txt").write_text("kept")
    prepare(tmp_path / "demo", Afternoon(people=5, events=5, moves=0))
    assert sorted(one.name for one in config.parent.iterdir()) == [
        "mine.txt",
        "records",
        "stentor.toml",
    ]
    assert len(list((config.parent / "records").iterdir())) == 1
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years of work")
    with pytest.raises(FolderError, match="choose another --folder"):
        prepare(tmp_path / "thesis", AFTERNOON)
    assert [one.name for one in (tmp_path / "thesis").iterdir()] == ["thesis.tex"]


def test_a_demo_that_is_being_streamed_is_left_alone(tmp_path):
    prepare(tmp_path, AFTERNOON)
    with (
        lock_folder(tmp_path / "pipeline"),
        pytest.raises(FolderError, match="is being written by"),
    ):
        prepare(tmp_path, AFTERNOON)
    assert (tmp_path / "pipeline").exists()
