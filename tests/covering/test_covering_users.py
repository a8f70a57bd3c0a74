"""Covering for users: relations by id, an engine's redundant subscriptions, the two commands."""

import json
import os
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from typer.testing import CliRunner

from stentor.cli.app import app
from stentor.covering import relations as relations_module
from stentor.covering.covers import covers
from stentor.covering.graph.g_k import CoveringGraph
from stentor.covering.relations import CoveringTable
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.engine import Engine
from stentor.errors import NeverMatchesWarning, SettingsError, UnknownIdError
from stentor.language.check import check_and_learn
from stentor.language.normal_predicates import Inside
from stentor.language.normalise import NormalForm
from stentor.language.tree import needs_position
from stentor.model import Box, Circle, Schema
from tests.support import grid
from tests.support.covering_strategies import normalised, related
from tests.support.workloads import MARKET, market

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
DIFFERENT = 2000


def one(text, schema):
    return encode_subscriptions(
        [NormalisedSubscription(check_and_learn(text, schema, where="here")[1])], schema
    )


def test_what_is_covered_is_not_forwarded_and_comes_back_when_its_coverer_leaves():
    schema = Schema()
    relations = CoveringTable(schema)
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
    relations = CoveringTable(schema)
    relations.subscribe("ana", one("price < 300", schema))
    relations.subscribe("ben", one("price < 200", schema))
    assert relations.subscribe("ana", one("price < 100", schema)) == (["ben"], ["ana"])
    assert relations.coverers("ana") == ["ben"]
    assert relations.subscribe("ben", one("stock = 1", schema)) == (["ana", "ben"], [])


def test_who_does_not_stand_is_unknown():
    relations = CoveringTable(Schema())
    for question in (relations.unsubscribe, relations.coverers, relations.is_forwarded):
        with pytest.raises(UnknownIdError):
            question("nobody")
    with pytest.raises(SettingsError):
        relations.subscribe_batch(["a", "b"], one("TRUE", Schema()))


def test_rows_of_what_is_gone_are_left_out_and_nothing_else_changes(monkeypatch):
    monkeypatch.setattr(relations_module, "MIN_DEAD_ROWS", 8)
    schema = Schema.declare(MARKET)
    texts = list(market(5, 300))
    tidied, kept = CoveringTable(schema, 2), CoveringTable(schema, 2)
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
        self.relations = CoveringTable(self.schema, 2)
        self.held = {}
        self.forwarded = set()

    def _follow(self, sent):
        assert not set(sent.forward) & set(sent.withdraw)
        self.forwarded |= set(sent.forward)
        self.forwarded -= set(sent.withdraw)

    @rule(id=st.sampled_from("abcdef"), several=related(max_size=1))
    def subscribe(self, id, several):
        form = normalised(several[0])
        self.held[id] = form
        self._follow(self.relations.subscribe(id, encode_subscriptions([form], self.schema)))

    @rule(id=st.sampled_from("abcdef"))
    def unsubscribe(self, id):
        if id in self.held:
            del self.held[id]
            self._follow(self.relations.unsubscribe(id))

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
    schema = Schema.declare(MARKET)
    texts = market(k, DIFFERENT)
    forms = [
        NormalisedSubscription(check_and_learn(text, schema, where="here")[1]) for text in texts
    ]
    columns = encode_subscriptions(forms, schema)
    graph = CoveringGraph(schema, k)
    rows = np.concatenate([graph.add(columns) for _ in range(OPERATIONS // DIFFERENT)])
    commands, left = commands_on(rows, OPERATIONS, np.random.default_rng(k))
    for part in np.array_split(commands, 8):
        graph.run(part)
        graph.check()
    assert np.flatnonzero(graph.state).tolist() == sorted(left)


def anywhere(form):
    """*form* of somebody who may be anywhere: around whom is the whole world."""
    world = Inside(Box(-180.0, -90.0, 180.0, 90.0), False)
    return NormalisedSubscription(
        NormalForm(
            tuple(
                tuple(
                    one._replace(test=world) if is_around(one.test) else one for one in conditions
                )
                for conditions in form.form.alternatives
            )
        )
    )


def is_around(test):
    """Whether *test* asks for something around the subscriber."""
    return (
        isinstance(test, Inside) and isinstance(test.region, Circle) and test.region.centre is None
    )


@given(related(max_size=8))
@settings(max_examples=settings.default.max_examples // 2)
def test_an_engine_lists_exactly_what_another_subscription_covers(several):
    engine = Engine("scan", schema=grid.schema(), clock=None)
    forms, moving = {}, set()
    for number, subscription in enumerate(several):
        id = f"s{number}"
        forms[id] = normalised(subscription)
        if needs_position(subscription.expression):
            moving.add(id)
            forms[id] = anywhere(forms[id])
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
            and other not in moving
            and covers(wide, form, engine.schema)
            and (other < id or id in moving or not covers(form, wide, engine.schema))
        }
        assert (id in found) == bool(above)
        if above:
            assert found[id] in above - set(found)


def test_an_engine_without_subscriptions_has_none_that_is_redundant():
    assert Engine(clock=None).redundant() == []


def test_subscriptions_that_are_over_cover_nothing():
    engine = Engine(clock=None)
    engine.subscribe("wide", "price < 300", until=10, time=0)
    engine.subscribe("narrow", "price < 200", until=30, time=1)
    engine.subscribe("short", "price < 100", until=9, time=2)
    assert engine.redundant() == [("short", "narrow")]
    engine.publish({"id": "e"}, time=20)
    assert engine.redundant() == []


def test_only_what_ends_no_earlier_covers():
    engine = Engine(clock=None)
    engine.subscribe("brief", "price < 300", until=10)
    engine.subscribe("equal", "price < 300", until=20)
    engine.subscribe("narrow", "price < 200")
    engine.subscribe("same", "price < 200")
    with pytest.warns(NeverMatchesWarning):
        engine.subscribe("nothing", "price < 5 AND price > 9")
    found = engine.redundant()
    assert found == [("brief", "equal"), ("nothing", "narrow"), ("same", "narrow")]


def test_whoever_may_move_covers_nothing_and_is_covered_wherever_it_goes():
    engine = Engine(clock=None)
    here = "ST_DWithin(loc, here(), {})"
    engine.subscribe("far", here.format(9000), at=(0, 0))
    engine.subscribe("near", here.format(1000), at=(0, 0))
    engine.subscribe("box", "ST_Within(loc, ST_MakeEnvelope(-9, -9, 9, 9))")
    engine.subscribe("inside", "ST_DWithin(loc, ST_Point(1, 1), 10)")
    engine.subscribe("cheap", "price < 9 AND loc IS NOT NULL")
    engine.subscribe("cheap near", f"price < 5 AND {here.format(10)}", at=(0, 0))
    engine.subscribe("cheap away", f"price < 5 AND NOT {here.format(10)}", at=(0, 0))
    assert engine.redundant() == [
        ("cheap away", "cheap"), ("cheap near", "cheap"), ("inside", "box")
    ]  # fmt: skip


def drawn_history(source, count):
    """Random subscriptions with ends and places, then moves and events, in order of time."""
    texts = [
        "price < {n}", "price BETWEEN 1 AND {n}", "brand IN ('a', 'b') AND price < {n}",
        "brand = 'a'", "brand = 'a' OR brand = 'b' AND price < {n}", "TRUE", "loc IS NOT NULL",
        "ST_DWithin(loc, here(), {n}00000)", "price < {n} AND ST_DWithin(loc, here(), 300000)",
        "ST_Within(loc, ST_MakeEnvelope(-{n}, -{n}, {n}, {n}))", "has_any(text, 'x', 'y')",
        "NOT ST_DWithin(loc, here(), {n}00000)", "has_all(text, 'x') AND price < {n}",
        "price < {n} OR ST_DWithin(loc, here(), 200000)",
    ]  # fmt: skip
    place = lambda: [source.randrange(-4, 5), source.randrange(-4, 5)]  # noqa: E731
    for number in range(count):
        yield {
            "op": "subscribe", "id": f"s{number}", "time": 0, "at": place(),
            "expression": source.choice(texts).format(n=source.randrange(1, 5)),
            "until": source.choice([None, None, 30, 60, 60]),
        }  # fmt: skip
    for time in range(1, 90):
        yield {"op": "move", "id": f"s{source.randrange(count)}", "at": place(), "time": time}
        yield {
            "op": "publish", "id": f"e{time}", "time": time, "price": source.randrange(5),
            "brand": source.choice("abc"), "text": source.choice(["x", "y z", "z"]), "loc": place(),
        }  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_delivered_to_the_redundant_is_delivered_to_their_coverers_for_ever(seed):
    history = list(drawn_history(random.Random(seed), 14))
    whole = Engine("scan", clock=None)
    whole.step(history[:14])
    coverer = dict(whole.redundant())
    assert not set(coverer.values()) & set(coverer)
    delivered = 0
    for record in history[14:]:
        for answer in whole.step([record]):
            if record["op"] == "publish":
                assert {coverer[id] for id in answer if id in coverer} <= set(answer)
                delivered += len(answer)
    assert delivered


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
