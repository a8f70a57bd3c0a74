"""Covering for users: relations by id, an engine's redundant subscriptions, the two commands."""

import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from typer.testing import CliRunner

from stentor.cli.app import app
from stentor.covering import relations as relations_module
from stentor.covering.meaning.covers import covers
from stentor.covering.mixed.graph import MixedGraph
from stentor.covering.relations import Relations
from stentor.encoding.subscriptions import Standing, encode_subscriptions
from stentor.engine import Engine
from stentor.errors import SettingsError, UnknownIdError
from stentor.language.admit import admit
from stentor.model import Schema
from stentor.testing import grid
from stentor.workloads.interests import Interests
from tests.covering_strategies import related, standing

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
DIFFERENT = 2000


def one(text, schema):
    return encode_subscriptions([Standing(admit(text, schema, where="here")[1])], schema)


def test_what_is_covered_is_not_forwarded_and_comes_back_when_its_coverer_leaves():
    schema = Schema()
    relations = Relations(schema)
    assert relations.subscribe("wide", one("price < 300", schema)) == (["wide"], [])
    assert relations.subscribe("narrow", one("price < 200", schema)) == ([], [])
    assert relations.subscribe("inner", one("price = 7 AND brand = 'a'", schema)) == ([], [])
    assert relations.coverers("narrow") == ["wide"]
    assert set(relations.covered("wide") + relations.covered("narrow")) == {"narrow", "inner"}
    assert (relations.forwarded(), relations.passive()) == (["wide"], ["inner", "narrow"])
    assert relations.unsubscribe("wide") == (["narrow"], ["wide"])
    assert relations.is_forwarded("narrow")
    assert not relations.is_forwarded("inner")
    assert len(relations) == 2
    assert list(relations) == ["narrow", "inner"]
    relations.check()


def test_a_subscription_that_is_replaced_is_withdrawn_and_forwarded_in_its_new_form():
    schema = Schema()
    relations = Relations(schema)
    relations.subscribe("ana", one("price < 300", schema))
    relations.subscribe("ben", one("price < 200", schema))
    assert relations.subscribe("ana", one("price < 100", schema)) == (["ben"], ["ana"])
    assert relations.coverers("ana") == ["ben"]
    assert relations.subscribe("ben", one("stock = 1", schema)) == (["ana", "ben"], [])


def test_who_does_not_stand_is_unknown():
    relations = Relations(Schema())
    for question in (relations.unsubscribe, relations.coverers, relations.is_forwarded):
        with pytest.raises(UnknownIdError):
            question("nobody")
    with pytest.raises(SettingsError):
        relations.subscribe_batch(["a", "b"], one("TRUE", Schema()))


def test_rows_of_what_is_gone_are_left_out_and_nothing_else_changes(monkeypatch):
    monkeypatch.setattr(relations_module, "MIN_DEAD_ROWS", 8)
    schema = Interests().schema
    texts = list(Interests(5).texts(300))
    tidied, kept = Relations(schema, 2), Relations(schema, 2)
    random = np.random.default_rng(1)
    for number, text in enumerate(texts):
        columns = one(text, schema)
        monkeypatch.setattr(relations_module, "MIN_DEAD_ROWS", 8)
        sent = tidied.subscribe(str(number % 90), columns)
        monkeypatch.setattr(relations_module, "MIN_DEAD_ROWS", 1 << 40)
        assert kept.subscribe(str(number % 90), columns) == sent
        if number % 3 == 0:
            gone = str(random.choice(list(kept)))
            wanted = kept.unsubscribe(gone)
            monkeypatch.setattr(relations_module, "MIN_DEAD_ROWS", 8)
            assert tidied.unsubscribe(gone) == wanted
    assert tidied.graph.count < kept.graph.count
    assert {id: tidied.coverers(id) for id in tidied} == {id: kept.coverers(id) for id in kept}
    tidied.check()


class Forwardings(RuleBasedStateMachine):
    """Subscriptions of the whole language come, go and are replaced; a neighbour keeps book."""

    def __init__(self):
        super().__init__()
        self.schema = grid.schema()
        self.relations = Relations(self.schema, 2)
        self.held = {}
        self.forwarded = set()

    def _tell(self, sent):
        assert not set(sent.forward) & set(sent.withdraw)
        self.forwarded |= set(sent.forward)
        self.forwarded -= set(sent.withdraw)

    @rule(id=st.sampled_from("abcdef"), several=related(max_size=1))
    def subscribe(self, id, several):
        form = standing(several[0])
        self.held[id] = form
        self._tell(self.relations.subscribe(id, encode_subscriptions([form], self.schema)))

    @rule(id=st.sampled_from("abcdef"))
    def unsubscribe(self, id):
        if id in self.held:
            del self.held[id]
            self._tell(self.relations.unsubscribe(id))

    @invariant()
    def what_is_forwarded_covers_the_rest(self):
        self.relations.check()
        assert self.forwarded == set(self.relations.forwarded())
        for id, form in self.held.items():
            assert any(covers(self.held[top], form, self.schema) for top in self.forwarded), id


TestForwardings = Forwardings.TestCase
TestForwardings.settings = settings(max_examples=max(1, settings.default.max_examples // 5))


def commands_on(rows, count, random):
    """*count* random commands on *rows*, 45 % of them unsubscriptions; who stands at last."""
    standing_rows, commands, arrived = [], [], 0
    for _ in range(count):
        if standing_rows and (random.random() < 0.45 or arrived == len(rows)):
            place = int(random.integers(len(standing_rows)))
            standing_rows[place], standing_rows[-1] = standing_rows[-1], standing_rows[place]
            commands.append(~standing_rows.pop())
        else:
            commands.append(int(rows[arrived]))
            standing_rows.append(int(rows[arrived]))
            arrived += 1
    return np.array(commands), standing_rows


@pytest.mark.parametrize("k", [1, 3])
def test_a_long_run_keeps_every_invariant(k):
    schema = Interests().schema
    texts = Interests(k).texts(DIFFERENT)
    forms = [Standing(admit(text, schema, where="here")[1]) for text in texts]
    columns = encode_subscriptions(forms, schema)
    graph = MixedGraph(schema, k)
    rows = np.concatenate([graph.add(columns) for _ in range(OPERATIONS // DIFFERENT)])
    commands, left = commands_on(rows, OPERATIONS, np.random.default_rng(k))
    for part in np.array_split(commands, 8):
        graph.run(part)
        graph.check()
    assert np.flatnonzero(graph.standing).tolist() == sorted(left)


@given(related(max_size=8))
@settings(max_examples=settings.default.max_examples // 2)
def test_an_engine_lists_exactly_what_another_subscription_covers(several):
    engine = Engine("scan", schema=grid.schema(), clock=None)
    forms = {}
    for number, subscription in enumerate(several):
        id = f"s{number}"
        forms[id] = standing(subscription)
        if forms[id].form.never:
            del forms[id]
            continue
        engine.subscribe(id, subscription.expression, at=subscription.at)
    found = dict(engine.redundant())
    for id, form in forms.items():
        above = {
            other
            for other, wide in forms.items()
            if other != id
            and covers(wide, form, engine.schema)
            and (other < id or not covers(form, wide, engine.schema))
        }
        assert (id in found) == bool(above)
        if above:
            assert found[id] in above - set(found)


def test_an_engine_without_subscriptions_has_none_that_is_redundant():
    assert Engine(clock=None).redundant() == []


def test_subscriptions_that_are_over_cover_nothing():
    engine = Engine(clock=None)
    engine.subscribe("wide", "price < 300", until=10, time=0)
    engine.subscribe("narrow", "price < 200", time=1)
    assert engine.redundant() == [("narrow", "wide")]
    engine.publish({"id": "e"}, time=20)
    assert engine.redundant() == []


RUN = CliRunner()


def test_the_command_covers_says_why_and_exits_by_its_answer():
    done = RUN.invoke(app, ["covers", "price < 300", "price < 200"])
    assert done.exit_code == 0
    assert "A covers B" in done.stdout
    done = RUN.invoke(app, ["covers", "price < 200", "price < 300", "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["covers"] is False


def test_the_command_covers_knows_where_both_stand():
    near = ["covers", "ST_DWithin(loc, here(), 9000)", "ST_DWithin(loc, here(), 1000)"]
    assert RUN.invoke(app, [*near, "--at", "151.2,-33.9", "--at-b", "151.21,-33.9"]).exit_code == 0
    assert RUN.invoke(app, [*near, "--at", "151.2,-33.9", "--at-b", "152.2,-33.9"]).exit_code == 1


SUBSCRIPTIONS = [
    {"id": "wide", "expression": "price < 300"},
    {"id": "narrow", "expression": "price < 200", "until": "2099-01-01T00:00:00Z"},
    {"id": "other", "expression": "ST_DWithin(loc, here(), 1000)", "at": [151.2, -33.9]},
]


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "subscriptions.jsonl"
    path.write_text("\n".join(map(json.dumps, SUBSCRIPTIONS)) + "\nno JSON\n")
    return path


def test_the_command_covers_finds_both_in_a_file(file):
    assert RUN.invoke(app, ["covers", "wide", "narrow", "-s", str(file)]).exit_code == 0
    assert RUN.invoke(app, ["covers", "narrow", "wide", "-s", str(file)]).exit_code == 1


def test_the_command_cover_leaves_what_must_be_forwarded(file, tmp_path):
    done = RUN.invoke(app, ["cover", "-s", str(file), "--pairs", "pairs.jsonl"])
    assert done.exit_code == 0, done.output
    kept = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["id"] for one in kept] == ["other", "wide"]
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert pairs == [{"id": "narrow", "covered_by": "wide"}]
    assert "rejected.jsonl" in done.output


def test_the_command_cover_writes_and_reads_parquet(file, tmp_path):
    done = RUN.invoke(app, ["cover", "-s", str(file), "-o", "kept.parquet", "--json"])
    summary = json.loads(done.stdout)
    assert (summary["forwarded"], summary["redundant"], summary["rejected"]) == (2, 1, 1)
    assert summary["covers the most"] == {"wide": 1}
    assert pq.read_table(tmp_path / "kept.parquet")["id"].to_pylist() == ["other", "wide"]
    again = RUN.invoke(app, ["cover", "-s", "kept.parquet", "-o", "again.jsonl", "--json"])
    assert json.loads(again.stdout)["forwarded"] == 2
    lines = (tmp_path / "again.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["other", "wide"]


def test_the_command_cover_does_not_write_over_what_it_reads(file):
    assert RUN.invoke(app, ["cover", "-s", str(file), "-o", str(file)]).exit_code != 0
