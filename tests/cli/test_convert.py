"""`stentor convert`: files in, subscriptions out, what is refused beside them."""

import json

from typer.testing import CliRunner

from stentor.cli.app import app
from stentor.cli.convert import SystemName
from stentor.wire.foreign import SYSTEMS


def convert(*arguments):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)])


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rules_become_subscriptions_and_the_others_are_told_of(tmp_path):
    rules, out, rejected = (tmp_path / name for name in ("rules.jsonl", "out.jsonl", "bad.jsonl"))
    lines = [
        {"id": "a", "query": {"term": {"brand": "Apple"}}},
        {"id": "b", "query": {"fuzzy": {"brand": "A"}}},
        {"term": {"title": "iPad"}},
        7,
    ]
    rules.write_text("\n".join(map(json.dumps, lines)))
    mapping = tmp_path / "mapping.json"
    mapping.write_text(json.dumps({"properties": {"title": {"type": "text"}}}))
    files = ["--from", "percolator", rules, "--out", out, "--rejected", rejected]
    done = convert(*files, "--mapping", mapping, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == {
        "converted": 2,
        "rejected": 2,
        "rejected file": str(rejected),
    }
    assert lines_of(out) == [
        {"id": "a", "expression": "brand = 'Apple'"},
        {"id": "rule-3", "expression": "has_all(title, 'iPad')"},
    ]
    first, second = lines_of(rejected)
    assert first["line"] == 2
    assert first["reason"].startswith("b: the query 'fuzzy' cannot be said in an expression")
    assert second["reason"] == "a rule is an object, got 7"


def test_one_document_may_hold_many_rules(tmp_path):
    rules = tmp_path / "rules.json"
    patterns = [{"Name": name, "EventPattern": {"n": [n]}} for n, name in enumerate("ab")]
    rules.write_text(json.dumps({"Rules": patterns}, indent=1))
    done = convert("--from", "eventbridge", rules, "--rejected", tmp_path / "bad.jsonl")
    assert done.exit_code == 0, done.output
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": "a", "expression": "n = 0"},
        {"id": "b", "expression": "n = 1"},
    ]


def test_what_is_no_json_is_a_wrong_call(tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text("{\nprice < 3")
    done = convert("--from", "eventbridge", rules)
    assert "rules.json:1 is no JSON" in str(done.exception)


def test_every_system_can_be_named():
    assert {system.value for system in SystemName} == SYSTEMS.keys()
