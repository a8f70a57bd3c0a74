"""`stentor size`: what a sample tells of more."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stentor.cli.app import app
from stentor.cli.size import BASE_BYTES, BUSY, Measured, drawn_out, measure


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
