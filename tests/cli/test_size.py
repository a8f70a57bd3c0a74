"""`stentor size`: what a sample tells of more."""

import json
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stentor import Engine
from stentor.cli import size
from stentor.cli.app import app
from stentor.cli.size import BASE_BYTES, BUSY, Measured, drawn, drawn_out, measure


def sample(small: float, large: float) -> list[Measured]:
    return [Measured(1_000, 500.0, small, 1.0), Measured(4_000, 500.0, large, 4.0)]


def test_time_that_does_not_grow_stays() -> None:
    estimate = drawn_out(sample(1e-5, 1e-5), 1_000_000, 1_000)
    assert estimate.seconds == pytest.approx(1e-5)
    assert estimate.bytes == BASE_BYTES + 500_000_000
    assert estimate.cores == 1


def test_time_grows_as_the_samples_say_and_never_faster_than_the_subscriptions() -> None:
    assert drawn_out(sample(1e-5, 2e-5), 64_000, 1).seconds == pytest.approx(8e-5)
    assert drawn_out(sample(1e-5, 9e-5), 40_000, 1).seconds == pytest.approx(90e-5)
    assert drawn_out(sample(2e-5, 1e-5), 40_000, 1).seconds == pytest.approx(1e-5)


def test_cores_keep_time_free() -> None:
    estimate = drawn_out(sample(1e-4, 1e-4), 4_000, 30_000)
    assert estimate.cores == 5
    assert estimate.rate * estimate.seconds / estimate.cores <= BUSY


def test_a_sample_is_measured() -> None:
    wishes = [{"id": f"s{n}", "expression": f"a < {n}"} for n in range(64)]
    small, large = measure(wishes, [{"id": f"e{n}", "a": n} for n in range(10)])
    assert (small.subscriptions, large.subscriptions) == (16, 64)
    # Event n is wanted by those that ask for more than n.
    assert large.matches == sum(63 - n for n in range(10)) / 10
    assert min(small.bytes, large.bytes, small.seconds, large.seconds) > 0


def test_the_users_own_files_are_the_sample(tmp_path: Path) -> None:
    wishes, events = tmp_path / "wishes.jsonl", tmp_path / "events.jsonl"
    wishes.write_text(
        "\n".join(json.dumps({"id": f"s{n}", "expression": "a < 5"}) for n in range(20)), "utf-8"
    )
    events.write_text('{"id": "e1", "a": 1}\n{"id": "e2", "a": 9}\n', "utf-8")
    arguments = ["size", "1000", "10", "-s", str(wishes), "-e", str(events), "--json"]
    found = json.loads(CliRunner().invoke(app, arguments).output)
    assert [one["subscriptions"] for one in found["samples"]] == [5, 20]
    assert found["samples"][1]["matches"] == 10.0
    assert (found["subscriptions"], found["events/s"], found["cores"]) == (1000, 10.0, 1)


def test_half_a_sample_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["size", "1000", "10", "-s", str(tmp_path / "wishes.jsonl")])
    assert done.exit_code == 2
    assert "go together" in done.output


def test_matches_are_drawn_out_as_the_samples_say() -> None:
    assert drawn_out(sample(1e-5, 1e-5), 400_000, 1).matches == pytest.approx(400)
    alike = [one._replace(matches=0.5) for one in sample(1e-5, 1e-5)]
    assert drawn_out(alike, 400_000, 1).matches == 0.5
    none = [one._replace(matches=0.0) for one in sample(1e-5, 1e-5)]
    assert drawn_out(none, 400_000, 1).matches == 0


def test_an_event_of_the_drawn_sample_is_wanted_by_as_many_of_more_people() -> None:
    found = []
    for people in (5_000, 20_000):
        engine = Engine(clock=None)
        wishes, events = drawn(people)
        assert len({one["id"] for one in wishes}) == people
        engine.step([{**one, "op": "subscribe"} for one in wishes])
        found.append(engine.publish_batch(events).matches.num_rows / len(events))
    assert 0.2 < found[0] < 0.6
    assert 0.5 < found[1] / found[0] < 2


def test_only_the_time_of_the_thread_that_publishes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    wishes = [{"id": f"s{n}", "expression": f"a < {n}"} for n in range(8)]
    monkeypatch.setattr(size, "thread_time", count(step=3).__next__)
    assert measure(wishes, [{"id": "e", "a": 1}])[1].seconds == 3
