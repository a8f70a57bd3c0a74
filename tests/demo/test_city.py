"""The city of the demonstration: an afternoon is deterministic, and wrong only on purpose."""

from collections import Counter
from itertools import pairwise
from math import hypot
from random import Random

import pytest

from stentor.demo.afternoon import KINDS, Afternoon
from stentor.demo.street import FAULTS, TASTES
from stentor.engine import Engine
from stentor.errors import SettingsError, StentorError
from stentor.language.parser import parse
from stentor.model import Schema
from stentor.model.values.time import parse_timestamp
from stentor.wire.records import record_from_dict

SMALL = {"people": 60, "shops": 10, "events": 60, "moves": 80, "leaving": 0.3}


def test_an_afternoon_has_as_many_records_of_each_kind_as_was_asked():
    afternoon = Afternoon(**SMALL, bad=0.1)
    records = list(afternoon.records())
    assert len(records) == len(afternoon) == sum(afternoon.happenings.values())
    assert afternoon.happenings["fault"] == round(0.1 * (60 + 60 + 80 + 18))
    good = Counter(record["op"] for record in Afternoon(**SMALL, bad=0.0).records())
    assert good == {"subscribe": 60, "publish": 60, "move": 80, "unsubscribe": 18}


def test_an_afternoon_is_the_same_each_time_and_another_with_another_seed():
    one = list(Afternoon(**SMALL).records())
    assert one == list(Afternoon(**SMALL).records())
    assert one != list(Afternoon(**SMALL, seed=2).records())


def test_times_ascend_through_the_afternoon():
    times = [parse_timestamp(one["time"]) for one in Afternoon(**SMALL, bad=0.2).records()]
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert times[0] == parse_timestamp("2026-05-16 11:00:00+02:00")
    assert times[-1] < parse_timestamp("2026-05-16 18:00:00+02:00")


@pytest.mark.parametrize("schema", [Schema(), Schema.declare(KINDS)])
def test_good_records_are_read_with_a_learned_and_with_a_declared_schema(schema):
    for record in Afternoon(**SMALL, bad=0.0).records():
        record_from_dict(record, schema)
    assert {name: schema.kind(name) for name in KINDS} == KINDS


def test_every_interest_is_an_expression():
    random = Random(1)
    for taste in TASTES:
        for _ in range(20):
            parse(taste(random), schema=Schema.declare(KINDS))


def test_only_people_who_are_there_move_and_leave():
    there = set()
    for record in Afternoon(**SMALL | {"leaving": 0.8}, bad=0.0, seed=4).records():
        match record["op"]:
            case "subscribe":
                assert record["id"] not in there
                there.add(record["id"])
            case "unsubscribe":
                there.remove(record["id"])
            case "move":
                assert record["id"] in there


@pytest.mark.parametrize("people", [1, 2, 10, 11])
def test_a_few_people_are_enough_whoever_leaves(people):
    afternoon = Afternoon(people=people, shops=1, events=3, moves=30, leaving=0.99, bad=0.5)
    assert len(list(afternoon.records())) == len(afternoon)


def test_people_walk_no_faster_than_they_can():
    places = {}
    for record in Afternoon(**SMALL, bad=0.0).records():
        if record["op"] in ("subscribe", "move"):
            now = parse_timestamp(record["time"]) / 1e6
            x, y = record["at"]
            if record["op"] == "move":
                x0, y0, then = places[record["id"]]
                metres = hypot((x - x0) * 58_600, (y - y0) * 111_195)
                assert metres <= 1.31 * (now - then) + 1.0
            places[record["id"]] = x, y, now


#: Faults that only an engine can find: it knows who is there and what time it is.
BY_THE_ENGINE = {"_over_before_it_came", "_unknown_person"}


@pytest.mark.parametrize("make", FAULTS, ids=lambda make: make.__name__)
def test_every_fault_is_refused_and_changes_nothing(make):
    for schema in (Schema.declare(KINDS), learned()):
        before = schema.to_dict()
        record = make("bad-1", "2026-05-16T13:00:00+02:00", [11.6, 58.2])
        if make.__name__ in BY_THE_ENGINE:
            record_from_dict(record, schema)
        else:
            with pytest.raises(StentorError):
                record_from_dict(record, schema)
        assert schema.to_dict() == before


def learned() -> Schema:
    """A schema after the first records of an afternoon."""
    schema = Schema()
    for record in Afternoon(people=20, shops=5, events=20, moves=0, bad=0.0).records():
        record_from_dict(record, schema)
    return schema


@pytest.mark.parametrize("schema", [None, KINDS], ids=["learned", "declared"])
def test_an_engine_refuses_the_faults_and_nothing_else(schema):
    afternoon = Afternoon(**SMALL, bad=0.3)
    records = list(afternoon.records())
    answers = list(Engine(schema=schema).step(records))
    refused = [
        record
        for record, answer in zip(records, answers, strict=True)
        if isinstance(answer, StentorError)
    ]
    assert len(refused) == afternoon.happenings["fault"] > 50
    assert {record.get("id", "bad-")[:4] for record in refused} == {"bad-", "nobo"}
    delivered = [answer for answer in answers if isinstance(answer, list) and answer]
    assert len(delivered) > 20


@pytest.mark.parametrize(("setting", "value"), [("people", 0), ("bad", -1), ("leaving", 1.0)])
def test_an_afternoon_that_cannot_be_is_refused(setting, value):
    with pytest.raises(SettingsError, match=r"an afternoon|share"):
        Afternoon(**{setting: value})
