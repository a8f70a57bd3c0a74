"""`stentor-lab overlay`, the benchmark of brokers, and the workload of both."""

import json
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stentor.broker import Overlay
from stentor.errors import DisagreementError, SettingsError
from stentor.language.parser import parse
from stentor.model import Event, Subscription
from stentor.model.record import Publish, Subscribe, Unsubscribe
from stentor_lab import bench
from stentor_lab.bench import BenchOptions
from stentor_lab.bench.brokers import POLICIES
from stentor_lab.cli import app
from stentor_lab.overlay.file import load
from stentor_lab.overlay.picture import layout
from stentor_lab.overlay.run import bursts, carried, run
from stentor_lab.overlay.workload import Coming
from stentor_lab.workloads.cubes import DISTRIBUTIONS, DOMAIN, Cubes

EXAMPLE = Path(__file__).parents[2] / "examples" / "overlay.toml"
LINKS = 'links = [["a", "b"], ["b", "c"]]\n'


def ran(*arguments):
    return CliRunner().invoke(app, ["overlay", *map(str, arguments)])


def written(folder, text):
    (folder / "overlay.toml").write_text(text, "utf-8")
    return folder / "overlay.toml"


def outcome(file):
    """Links, brokers and counts after the workload of *file*."""
    overlay, counts, _ = run(load(file), lambda done, note="": None)
    overlay.check()
    return carried(overlay), [one.stats() for one in overlay.brokers.values()], counts


# The command.


def test_the_example_shows_what_each_link_carried_and_draws_it(tmp_path):
    picture = tmp_path / "overlay.svg"
    result = ran(EXAMPLE, "--picture", picture)
    assert result.exit_code == 0, result.output
    assert re.search(
        r"from\s+to\s+subscribe\s+unsubscribe\s+move\s+publish\s+ranges", result.stdout
    )
    assert re.search(r"rome\s+south\s+\d+\s+0\s+0\s+\d+\s+0", result.stdout)
    assert re.search(r"oslo\s+north\s+0\s+0\s+0\s+\d+\s+\d+", result.stdout)
    assert re.search(r"riga\s+mics gap=16\s+\d+", result.stdout)
    assert "space, given: x0 0 to 255, x1 0 to 255; 8 bits each" in result.stdout
    drawn = picture.read_text("utf-8")
    assert drawn.count("<svg") == 1
    assert "messages about subscriptions" in drawn


def test_every_policy_delivers_the_same_and_tells_less_than_none(tmp_path):
    told, deliveries = {}, set()
    for policy in ("none", "covering", "poset", "mics", "mics gap=64"):
        file = written(
            tmp_path,
            f'policy = "{policy}"\n{LINKS}[workload]\ndistribution = "zipf"\nsubscriptions = 150\n'
            "events = 100\nsizes = 8\n",
        )
        links, _, counts = outcome(file)
        kinds = ("subscribe", "ranges")
        told[policy] = {kind: sum(link[kind] for link in links) for kind in kinds}
        deliveries.add(counts["deliveries"])
    assert len(deliveries) == 1
    assert told["none"] == {"subscribe": 300, "ranges": 0}
    assert told["poset"]["subscribe"] <= told["covering"]["subscribe"] < 300
    assert told["mics gap=64"]["ranges"] <= told["mics"]["ranges"] < 300
    assert told["mics"]["subscribe"] == 0


def test_a_space_that_is_not_given_is_chosen_and_named(tmp_path):
    records = [
        {"op": "subscribe", "id": f"s{low}", "expression": f"price BETWEEN {low} AND {low + 5}"}
        for low in range(0, 100, 10)
    ]
    records += [{"op": "publish", "id": "e", "price": 12}]
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    workload = '[workload]\nrecords = "records.jsonl"\n'
    file = written(tmp_path, f'policy = "mics"\n{LINKS}[space]\nbits = 6\n{workload}')
    result = ran(file)
    assert result.exit_code == 0, result.output
    assert re.search(r"space, chosen: price \d+ to \d+; 6 bits each", result.stdout)
    [dimension] = json.loads(ran(file, "--json").stdout)["space"]["dimensions"]
    assert dimension["attribute"] == "price"
    nowhere = {"op": "subscribe", "id": "s", "expression": "brand IS NOT NULL"}
    (tmp_path / "records.jsonl").write_text(json.dumps(nowhere))
    with pytest.raises(SettingsError, match=r"\[space\] is needed"):
        load(file).overlay()
    assert load(written(tmp_path, LINKS + workload)).overlay().space is None


def test_brokers_of_several_trees_are_told_of(tmp_path):
    drawn = "[workload]\nsubscriptions = 4\nevents = 4\n"
    result = ran(written(tmp_path, f'links = [["a", "b"], ["x", "y"]]\n{drawn}'))
    assert "these are 2 trees" in result.stdout
    assert "trees" not in ran(written(tmp_path, LINKS + drawn)).stdout


def test_records_of_a_file_are_fed_in_order(tmp_path):
    file = written(
        tmp_path,
        f'{LINKS}policy = "none"\n[schema]\nprice = "number"\n'
        '[workload]\nrecords = "records.jsonl"\n',
    )
    records = [
        {"op": "publish", "id": "e1", "price": 3, "until": 60, "time": 0},
        {"op": "subscribe", "id": "ana", "expression": "price < 5"},
        {"op": "publish", "id": "e2", "price": 4},
        {"op": "unsubscribe", "id": "ana"},
        {"op": "unsubscribe", "id": "ana"},
        {"op": "publish", "id": "e3", "price": 4},
    ]
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    found = json.loads(ran(file, "--json").stdout)
    assert (found["deliveries"], found["refused"], found["events"]) == (2, 1, 3)
    assert sum(link["subscribe"] for link in found["links"]) == 2
    assert sum(link["unsubscribe"] for link in found["links"]) == 2
    assert found["space"] is None
    assert found["reasons"] == ["refused: no subscription has the id 'ana'"]


def test_bad_records_are_counted_and_left_out(tmp_path):
    file = written(tmp_path, f'{LINKS}policy = "mics"\n[workload]\nrecords = "records.jsonl"\n')
    good = [
        {"op": "subscribe", "id": f"s{low}", "expression": f"price BETWEEN {low} AND {low + 9}"}
        for low in range(0, 50, 5)
    ]
    lines = ["no record", *map(json.dumps, good), '{"op": "publish", "id": "e", "price": 7}', "{}"]
    (tmp_path / "records.jsonl").write_text("\n".join(lines))
    result = ran(file)
    assert re.search(r"rejected +2\n", result.stdout)
    assert re.search(r"deliveries +2\n", result.stdout)
    assert "rejected: records.jsonl, line 1:" in result.stdout
    assert "rejected: records.jsonl, line 13:" in result.stdout


# Mistakes.


def test_every_mistake_of_a_file_is_told(tmp_path):
    file = written(
        tmp_path,
        'policy = "some"\nindex = "heap"\nlinks = [["a"], ["a", "b"], ["b", "c"], ["c", "a"]]\n'
        'link = 3\n[brokers]\nb = "mics gap=-1"\nromee = "none"\nbb = "none"\n'
        '[space]\nbits = 8\nmost = 2\ndimensions = [{ attribute = "x", low = 3, high = 1 }, '
        '{ low = "x", axis = "z" }]\n'
        '[schema]\nx = "number"\n'
        '[workload]\ndistribution = "normal"\nsize = 300\nsubscriptions = -5\nevnts = 3\n',
    )
    with pytest.raises(SettingsError) as caught:
        load(file)
    for piece in (
        "policy: no policy 'some'",
        "heap",
        'expected pairs like ["west", "east"], got ["a"]',
        'links: ["c", "a"] closes a circle',
        "link: there is no such key; did you mean links?",
        "[brokers], b: no policy 'mics gap=-1'",
        "[brokers], romee: no link leads to this broker",
        "[brokers], bb: no link leads to this broker; did you mean b?",
        "[space], most: only a space that is chosen has it",
        "[space], dimension 1: 'x' goes from 3.0 to 1.0",
        "[space], dimension 2, attribute: missing",
        "[space], dimension 2, axis: expected one of value, x, y",
        '[space], dimension 2, low: expected a number, got "x"',
        "[space], dimension 2, high: expected a number, got null",
        "[schema]: only records of a file have it",
        "[workload], distribution: expected one of uniform, zipf",
        "[workload], subscriptions: expected a whole number of at least 1, got -5",
        "[workload], evnts: there is no such key; did you mean events?",
        "[workload]: take 1 to 16 dimensions, and sizes below 256",
    ):
        assert piece in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "links: missing; expected pairs of brokers"),
        ("[", "is not TOML"),
        ("links = 3", "links: expected pairs"),
        ('links = [["a", "a"]]', r'\["a", "a"\] closes a circle'),
        ('links = [["a", "b"], ["b", "a"]]', r'\["b", "a"\] closes a circle'),
        ('links = [["a/b", "c"]]', "neither '|' nor '/'"),
        (LINKS + "[space]\ndimensions = 3", "expected a list of tables, got 3"),
        (LINKS + "[space]\ndimensions = [3]", "expected a table, got 3"),
        (LINKS + "[space]\ndimensions = []", "expected at least one dimension"),
        (LINKS + "[workload]\nburst = 0", "burst: expected a whole number of at least 1"),
        (LINKS + '[workload]\nrecords = "gone.jsonl"', "records: there is no file .*gone.jsonl"),
        (LINKS + '[workload]\nrecords = "r"\nevents = 3', "events: only drawn workloads have it"),
    ],
)
def test_a_mistake_of_a_file_says_where_it_is(tmp_path, text, message):
    with pytest.raises(SettingsError, match=message):
        load(written(tmp_path, text))


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_runs(tmp_path, monkeypatch):
    for path, message in (("a.gif", "its name ends with"), ("gone/a.png", "there is no folder")):
        result = ran(EXAMPLE, "--picture", tmp_path / path)
        assert isinstance(result.exception, SettingsError)
        assert message in str(result.exception)
    monkeypatch.setattr("stentor.cli.screen.find_spec", lambda name: None)
    result = ran(EXAMPLE, "--picture", tmp_path / "a.png")
    assert "matplotlib is not installed" in str(result.exception)


# Batches.


def coming(*records):
    return [Coming(record, place) for place, record in enumerate(records)]


def wish(id, time=None):
    return Subscribe(Subscription(id, parse("x > 1")), time)


def event(id, time=None, until=None):
    return Publish(Event(id, {"x": 2.0}, until=until), time)


def test_plain_events_of_one_time_come_together_and_changes_by_bursts():
    records = coming(
        *(wish("a"), wish("b"), Unsubscribe("a"), event("1"), event("2"), wish("c", 5)),
        *(event("3", 5), event("4"), event("5", 6), event("6", 6, until=9), event("7", 6)),
    )
    for changes, first in ((1, [1, 1, 1]), (2, [2, 1]), (3, [3])):
        pieces = list(bursts(records, changes))
        assert [one for piece in pieces for one in piece] == records
        assert [len(piece) for piece in pieces] == [*first, 2, 1, 2, 1, 1, 1]


def test_events_that_come_together_lead_to_what_they_lead_to_one_by_one(tmp_path, monkeypatch):
    file = written(
        tmp_path,
        f'policy = "mics gap=16"\n{LINKS}[workload]\nsubscriptions = 60\nevents = 90\nsizes = 8\n',
    )
    together = outcome(file)
    monkeypatch.setattr("stentor_lab.overlay.run.EVENTS", 1)
    assert outcome(file) == together


def test_bursts_change_what_is_told_but_nothing_that_is_delivered(tmp_path):
    text = LINKS + "[workload]\nsubscriptions = 200\nevents = 50\nsizes = 8\n"
    links, _, counts = outcome(written(tmp_path, text))
    burst_links, _, burst_counts = outcome(written(tmp_path, text + "burst = 200\n"))
    assert burst_counts == counts
    assert sum(one["publish"] for one in burst_links) == sum(one["publish"] for one in links)


# The picture.


@pytest.mark.parametrize("count", [2, 8, 11, 50])
def test_brokers_of_the_picture_do_not_lie_upon_one_another(count):
    draw = random.Random(count)
    names = [f"b{number}" for number in range(count)]
    links = [(names[draw.randrange(place)], names[place]) for place in range(1, count)]
    places = layout(Overlay(names, links))
    assert len(places) == count
    columns = {}
    for x, y in places.values():
        columns.setdefault(x, []).append(y)
    for lines in columns.values():
        lines.sort()
        assert all(after - before >= 1 for before, after in pairwise(lines))
    assert all(abs(places[one][0] - places[other][0]) == 1 for one, other in links)


def test_the_broker_on_the_left_is_in_the_middle_of_its_tree():
    chain = [(str(number), str(number + 1)) for number in range(8)]
    places = layout(Overlay([str(number) for number in range(9)] + ["x"], chain))
    assert places["4"] == (0.0, 0.5)
    assert max(x for x, _ in places.values()) == 4
    assert places["x"] == (0.0, 2.0)


# The benchmark.


def test_the_subject_compares_policies_that_deliver_the_same():
    result = bench.run("brokers", BenchOptions(300, 1, progress=lambda message: None))
    drawn = [(one.workload["attributes"], one.workload["workload"]) for one in result.tables]
    assert drawn == [(count, f"cubes, {kind}") for count in (2, 3) for kind in DISTRIBUTIONS]
    for table in result.tables:
        assert [row.name for row in table.rows] == ["one engine", *POLICIES]
        figures = {row.name: row.figures for row in table.rows}
        everything = figures["none"]
        size = table.workload["subscriptions"]
        assert everything["told"] == size * 10
        assert figures["mics gap=16"]["told"] <= figures["mics"]["told"]
        assert figures["mics gap=16"]["ranges"] < figures["mics"]["ranges"]
        if size == 300:
            assert figures["covering"]["told"] < everything["told"]
            assert figures["mics"]["told"] < figures["covering"]["told"]
        for name in POLICIES[1:]:
            assert figures[name]["told"] <= everything["told"]
            assert figures[name]["entries"] <= everything["entries"]
            assert figures[name]["wanted"] == everything["wanted"]
        assert everything["for nothing"] == figures["covering"]["for nothing"] == 0
        assert 0 <= figures["mics"]["for nothing"] <= figures["mics gap=16"]["for nothing"]
        assert {name for chart in table.charts for name in chart.figures} <= {
            name for row in table.rows for name in row.figures
        }


def test_a_policy_that_delivers_otherwise_is_refused(monkeypatch):
    monkeypatch.setattr("stentor_lab.bench.brokers._spread", lambda *arguments: [])
    with pytest.raises(DisagreementError, match="300 subscriptions of 2 attributes, uniform: none"):
        bench.run("brokers", BenchOptions(300, 1, progress=lambda message: None))


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


def test_a_file_that_is_nested_too_deep_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="is not TOML"):
        load(written(tmp_path, "x = " + "[" * 5000))
