"""The picture of a benchmark: which bars there are, and how long they may be."""

import pytest
from typer.testing import CliRunner

from stentor.errors import SettingsError
from stentor_lab.bench import BenchResult, Chart, Row, Table, Unit
from stentor_lab.cli import app
from stentor_lab.picture import draw, panels

CHARTS = (Chart("Sent", "messages", ("wanted", "for nothing")), Chart("Kept", "entries", ("kept",)))


def table(title, kept, charts=CHARTS):
    figures = {"wanted": 30.0, "for nothing": 10.0}
    rows = (
        Row("first", (2e-6, 4e-6, 3e-6), {"wanted": 50.0}),
        Row("second", (1e-6,), figures | {"kept": kept}),
        Row("without figures", (1e-6,)),
    )
    return Table(title, {}, "event", Unit.MICROSECONDS, rows, charts=charts)


def result(*tables):
    return BenchResult("brokers", tables, {})


def test_figures_of_a_chart_are_parts_of_one_bar_with_its_share_of_the_first():
    (sent, other_sent), (kept, other_kept) = panels(result(table("one", 4.0), table("two", 8.0)))
    assert sent.title == "Sent\none"
    assert other_sent.title == "Sent\ntwo"
    assert (sent.unit, sent.parts) == ("messages", ("wanted", "for nothing"))
    assert [(bar.name, bar.parts, bar.text) for bar in sent.bars] == [
        ("first", (50.0, 0.0), "50  (100 %)"),
        ("second", (30.0, 10.0), "40  (80 %)"),
    ]
    assert [bar.name for bar in kept.bars] == ["second"]
    assert [panel.most for panel in (sent, other_sent, kept, other_kept)] == [50, 50, 8, 8]


def test_a_table_without_charts_shows_its_medians_by_a_scale_of_its_own():
    [[first, second], [third]] = panels(result(*(table(title, 1.0, ()) for title in "abc")))
    assert [panel.title for panel in (first, second, third)] == ["a", "b", "c"]
    assert first.unit == "µs/event, median and spread"
    assert [bar.parts for bar in first.bars] == [(3.0,), (1.0,), (1.0,)]
    assert first.bars[0].spread == pytest.approx((1.0, 1.0))
    assert first.most == pytest.approx(4.0)


def test_a_chart_of_figures_that_no_row_has_is_empty():
    [[panel]] = panels(result(table("a", 1.0, (Chart("Odd", "things", ("odd",)),))))
    assert (panel.bars, panel.most) == ((), 0.0)


def test_a_picture_has_every_title_row_and_part(tmp_path):
    path = tmp_path / "bench.svg"
    draw(result(table("one", 4.0), table("two", 8.0), table("plain", 1.0, ())), path)
    drawn = path.read_text("utf-8")
    for text in (
        "stentor-lab bench brokers",
        "Sent",
        "two",
        "plain",
        "second",
        "for nothing",
        "80 %",
    ):
        assert f"<!-- {text}" in drawn or text in drawn


def test_the_command_draws_what_it_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "stentor_lab.bench.command.run", lambda subject, options: result(table("a", 1.0))
    )
    path = tmp_path / "bench.png"
    ran = CliRunner().invoke(app, ["bench", "brokers", "--picture", str(path)])
    assert ran.exit_code == 0, ran.output
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr("stentor_lab.bench.command.run", lambda *arguments: pytest.fail("measured"))
    for name in ("bench.gif", "gone/bench.png"):
        ran = CliRunner().invoke(app, ["bench", "scan", "--picture", name])
        assert isinstance(ran.exception, SettingsError)
