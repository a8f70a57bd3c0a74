"""`stentor overlay`, the benchmark of brokers, and the workload of both."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stentor import bench
from stentor.bench import BenchOptions
from stentor.broker import Overlay
from stentor.cli.app import app
from stentor.cli.overlay_file import load
from stentor.cli.overlay_picture import layout
from stentor.errors import RecordError, SettingsError
from stentor.language.parser import parse
from stentor.workloads.cubes import DOMAIN, Cubes

EXAMPLE = Path(__file__).parents[1] / "examples" / "overlay.toml"


def ran(*arguments):
    return CliRunner().invoke(app, ["overlay", *map(str, arguments)])


def test_the_example_shows_what_each_link_carried_and_draws_it(tmp_path):
    picture = tmp_path / "overlay.svg"
    result = ran(EXAMPLE, "--picture", picture)
    assert result.exit_code == 0, result.output
    assert re.search(r"rome\s+south\s+\d+\s+0\s+0\s+\d+", result.stdout)
    assert re.search(r"rome\s+none\s+\d+", result.stdout)
    assert re.search(r"for nothing\s+0\n", result.stdout)
    assert picture.read_text("utf-8").count("<svg") == 1


def test_records_of_a_file_are_fed_in_order(tmp_path):
    (tmp_path / "overlay.toml").write_text(
        'links = [["a", "b"], ["b", "c"]]\npolicy = "none"\n[schema]\nprice = "number"\n'
        '[workload]\nrecords = "records.jsonl"\n'
    )
    records = [
        {"op": "publish", "id": "e1", "price": 3, "until": 60, "time": 0},
        {"op": "subscribe", "id": "ana", "expression": "price < 5"},
        {"op": "publish", "id": "e2", "price": 4},
        {"op": "unsubscribe", "id": "ana"},
        {"op": "unsubscribe", "id": "ana"},
        {"op": "publish", "id": "e3", "price": 4},
    ]
    lines = "\n".join(map(json.dumps, records))
    (tmp_path / "records.jsonl").write_text(lines)
    result = ran(tmp_path / "overlay.toml", "--json")
    found = json.loads(result.stdout)
    assert (found["deliveries"], found["refused"], found["events"]) == (2, 1, 3)
    assert sum(link["subscribe"] for link in found["links"]) == 2
    assert sum(link["unsubscribe"] for link in found["links"]) == 2
    (tmp_path / "records.jsonl").write_text("no record\n")
    with pytest.raises(RecordError, match=r"records\.jsonl"):
        list(load(tmp_path / "overlay.toml").workload())


def test_every_mistake_of_a_file_is_told(tmp_path):
    file = tmp_path / "overlay.toml"
    file.write_text(
        'policy = "some"\nindex = "heap"\nlinks = [["a"], ["a", "b"]]\nlink = 3\n'
        '[workload]\ndistribution = "normal"\nsize = 300\n'
    )
    with pytest.raises(SettingsError) as caught:
        load(file)
    for piece in ("no policy 'some'", "heap", '["a"]', "link: ", "normal", "sizes below 256"):
        assert piece in str(caught.value)
    for text in ("", "[", "links = 3"):
        file.write_text(text)
        with pytest.raises(SettingsError):
            load(file)


def test_brokers_of_the_picture_do_not_lie_upon_one_another():
    links = [("a", "b"), ("a", "c"), ("c", "d"), ("c", "e"), ("x", "y")]
    places = layout(Overlay("abcdexy", links))
    assert len(set(places.values())) == len(places) == 7
    assert places["c"] == ((places["d"][0] + places["e"][0]) / 2, -1.0)


def test_the_subject_compares_policies_that_deliver_the_same():
    result = bench.run("brokers", BenchOptions(300, 1, progress=lambda message: None))
    assert [table.workload["workload"] for table in result.tables] == [
        *("cubes, uniform", "cubes, zipf")
    ]
    for table in result.tables:
        assert [row.name for row in table.rows] == ["one engine", "none", "covering"]
        everything, covering = (row.figures for row in table.rows[1:])
        assert everything["told"] == 300 * 10
        assert covering["told"] < everything["told"]
        assert covering["events sent"] == everything["events sent"]
        assert covering["for nothing"] == everything["for nothing"] == 0


def test_cubes_have_their_sizes_and_stay_in_their_domain():
    recipe = Cubes(3, "zipf", dimensions=3, size=5, sizes=2)
    for text in recipe.texts(200):
        bounds = [list(map(int, pair)) for pair in re.findall(r"BETWEEN (\d+) AND (\d+)", text)]
        assert len(bounds) == 3
        assert {high - low + 1 for low, high in bounds} in ({5}, {10})
        parse(text, schema=recipe.schema)
    for event in recipe.events(200):
        assert all(0 <= event[name] < DOMAIN for name in recipe.names)
    for wrong in ({"distribution": "x"}, {"dimensions": 0}, {"size": 300}):
        with pytest.raises(SettingsError):
            Cubes(**wrong)
