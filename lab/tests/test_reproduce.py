"""The papers' figures again: the registry, the command, the rules, and a run at a tiny size."""

import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from stentor.errors import SettingsError
from stentor_lab.cli import app
from stentor_lab.reproduce.claims import (
    NOT_EXPLAINED,
    Across,
    All,
    At,
    BestAt,
    Claim,
    Grows,
    Less,
    Narrows,
    Near,
    Proportional,
    Rises,
    Similar,
    Slower,
    Slows,
    Steadier,
)
from stentor_lab.reproduce.curves import Curve, Panel, Point, panel_of, paper_curve
from stentor_lab.reproduce.inventory import PAGE, inventory
from stentor_lab.reproduce.keyword_data import keyword_data
from stentor_lab.reproduce.registry import chosen, papers
from stentor_lab.reproduce.run import FigureResult, Folder, is_still_good, run, settings_of
from stentor_lab.reproduce.scale import RunSettings, scale_named

SMOKE = RunSettings(scale_named("smoke"), progress=lambda _: None)
EVERY = [
    pytest.param(paper, experiment, id=f"{paper.key}-{experiment.number}")
    for paper, experiment in chosen()
]


def panel_with(**curves):
    return Panel(
        "p",
        "title",
        "x",
        "y",
        tuple(
            Curve(name, tuple(Point(x, (y,)) for x, y in enumerate(values)))
            for name, values in curves.items()
        ),
    )


def verdict(rule, **curves):
    return rule.judge({"p": panel_with(**curves)}).verdict


def test_the_inventory_is_made_from_the_registry():
    assert PAGE.read_text("utf-8") == inventory(papers().values()), (
        "stentor-lab reproduce --inventory writes it anew"
    )


def test_every_figure_is_run_or_says_why_not():
    for paper in papers().values():
        numbers = [one.number for one in paper.experiments]
        assert len(numbers) == len(set(numbers))
        for one in paper.experiments:
            assert (one.measure is None) == bool(one.why_not)
            assert one.varied
            assert one.measured
            assert one.ours or one.why_not


def test_less_is_judged_at_every_point():
    less = Less("p", "a", ("b",))
    assert verdict(less, a=[1, 2], b=[3, 4]) == "agrees"
    assert verdict(less, a=[1, 5], b=[3, 4]) == "partly"
    assert verdict(less, a=[4, 5], b=[3, 4]) == "disagrees"
    assert verdict(less, a=[4, 4], b=[4, 4]) == "partly"


def test_a_factor_below_half_of_the_papers_agrees_partly():
    less = Less("p", "a", ("b",), {"b": 10.0})
    assert verdict(less, a=[1, 1], b=[3, 5]) == "agrees"
    assert verdict(less, a=[1, 1], b=[3, 4.9]) == "partly"


def test_growth_is_the_last_point_over_the_first():
    assert verdict(Grows("p", ("a",), least=2.0), a=[1, 9, 3]) == "agrees"
    assert verdict(Grows("p", ("a", "b"), most=2.0), a=[1, 3], b=[1, 1]) == "partly"
    assert verdict(Grows("p", ("a",), most=0.5), a=[1, 3]) == "disagrees"


def test_near_counts_points_within_a_factor():
    theirs = paper_curve([(0, 10.0), (1, 10.0)])
    panel = panel_with(a=[11, 30])
    panel = Panel("p", "t", "x", "y", (*panel.curves, theirs))
    assert Near("p", "a").judge({"p": panel}).verdict == "partly"
    assert Near("p", "a", within=4.0).judge({"p": panel}).verdict == "agrees"


def test_panels_are_compared_point_by_point():
    rule = Across("few", "many", ("a",))
    few, many = panel_with(a=[1, 2]), panel_with(a=[2, 4])
    assert rule.judge({"few": few, "many": many}).verdict == "agrees"
    assert rule.judge({"few": many, "many": few}).verdict == "disagrees"


def test_the_steadier_curve_varies_less():
    rule = Steadier("p", "a", ("b",))
    assert verdict(rule, a=[1, 2], b=[1, 4]) == "agrees"
    assert verdict(rule, a=[4, 1], b=[1, 2]) == "disagrees"


def test_the_best_value_lies_between_worse_ends():
    rule = BestAt("p", "a", 1)
    assert verdict(rule, a=[3, 1, 2]) == "agrees"
    assert verdict(rule, a=[3, 1, 1]) == "partly"
    assert verdict(rule, a=[1, 3, 2]) == "disagrees"


def test_rules_together_agree_only_if_all_do():
    less, more = Less("p", "a", ("b",)), Less("p", "b", ("a",))
    assert verdict(All((less, more)), a=[1], b=[2]) == "partly"
    assert verdict(All((less, less)), a=[1], b=[2]) == "agrees"


def test_rising_is_judged_step_by_step():
    rule = Rises("p", ("a",))
    assert verdict(rule, a=[1, 2, 4]) == "agrees"
    assert verdict(rule, a=[1, 9, 3]) == "partly"
    assert verdict(rule, a=[4, 2, 1]) == "disagrees"
    assert verdict(Rises("p", ("a",), falls=True), a=[4, 2, 1]) == "agrees"


def test_a_rule_can_look_at_some_points_alone():
    less = Less("p", "a", ("b",))
    assert verdict(At(less, "p", part=(1, None)), a=[9, 1], b=[3, 4]) == "agrees"
    assert verdict(At(less, "p", (0,)), a=[9, 1], b=[3, 4]) == "disagrees"
    assert At(less, "p", part=(0, 1)).text.startswith("at the first point: a takes less")


def test_growth_is_compared_between_curves_halves_and_with_x():
    assert verdict(Slower("p", "a", ("b",)), a=[1, 2], b=[1, 4]) == "agrees"
    assert verdict(Slower("p", "b", ("a",)), a=[1, 2], b=[1, 4]) == "disagrees"
    assert verdict(Slows("p", ("a",)), a=[1, 5, 6]) == "agrees"
    assert verdict(Slows("p", ("a",)), a=[1, 2, 9]) == "disagrees"
    points = tuple(Point(x, (y,)) for x, y in ((1, 10.0), (5, 30.0)))
    panel = {"p": Panel("p", "t", "x", "y", (Curve("a", points),))}
    assert Proportional("p", ("a",)).judge(panel).verdict == "agrees"
    assert verdict(Narrows("p", "a", "b"), a=[1, 1], b=[4, 2]) == "agrees"


def test_panels_are_similar_within_a_factor():
    rule = Similar("one", "other", ("a",), most=1.5)
    one, other = panel_with(a=[1, 2]), panel_with(a=[1, 1])
    assert rule.judge({"one": other, "other": one}).verdict == "agrees"
    assert rule.judge({"one": one, "other": other}).verdict == "partly"


def test_what_was_not_tested_is_not_explained():
    curves = (
        Curve("a", (Point(1, (1.0,), {"candidates/event": 5.0}),)),
        Curve("b", (Point(1, (2.0,), {"candidates/event": 50.0}),)),
    )
    panels = {"p": Panel("p", "t", "x", "y", curves)}
    counted = "Counted at the last point, candidates/event: a 5, b 50."
    less = Less("p", "a", ("b",))
    assert Claim("a wins", less, "Tested.").explained(panels, "partly") == f"Tested. {counted}"
    assert Claim("a wins", less).explained(panels, "agrees") == counted
    assert Claim("a wins", less).explained(panels, "partly") == f"{NOT_EXPLAINED} {counted}"


def test_a_point_is_the_median_of_repetitions_or_the_mean_of_parts():
    assert Point(1, (1.0, 2.0, 9.0)).value == 2.0
    assert Point(1, (1.0, 2.0, 9.0), is_mean=True).value == 4.0


def test_panels_are_kept_as_they_are():
    panel = panel_with(a=[1, 2], b=[3, 4])
    steady = Curve("steady", (Point(1, (1.0, 2.0), is_mean=True),))
    panel = replace(panel, curves=(*panel.curves, steady))
    assert panel_of(json.loads(json.dumps(panel.to_dict()))) == panel


@pytest.mark.parametrize(
    ("paper", "figure", "said"),
    [
        ("ap-tre", None, "no paper 'ap-tre'"),
        ("mics", "99", "there are table-1"),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(paper, figure, said):
    with pytest.raises(SettingsError, match=said):
        chosen(paper, figure)


def test_a_run_is_resumed_figure_by_figure(tmp_path):
    some, told = chosen("covering", "9"), []
    settings = RunSettings(scale_named("smoke"), progress=told.append)
    first = run(some, settings, Folder(tmp_path))
    assert told[0].startswith("covering 9: ")
    assert told[1].startswith("[1 of 1, about 0 s left] covering 9: ")
    told.clear()
    assert run(some, settings, Folder(tmp_path)) == first
    assert told == ["1 figures are kept from before"]
    other = RunSettings(scale_named("smoke"), seed=2, progress=told.append)
    assert run(some, other, Folder(tmp_path)) != first


def test_what_is_kept_counts_only_for_the_same_data_version_and_machine(tmp_path, monkeypatch):
    some, folder = chosen("covering", "9"), Folder(tmp_path / "out")
    (first,) = run(some, SMOKE, folder)
    wanted = settings_of(SMOKE)
    assert is_still_good(folder.kept(*some[0]), wanted)
    for name in ("stentor", "processor", "cores"):
        other = replace(first, machine={**first.machine, name: "another"})
        assert not is_still_good(other, wanted)
    monkeypatch.setenv("STENTOR_DATA", str(tmp_path))
    assert not is_still_good(first, settings_of(SMOKE))


def test_figures_are_measured_in_several_processes(tmp_path):
    some = [*chosen("covering", "9"), *chosen("mics", "7")]
    results = run(some, SMOKE, Folder(tmp_path), processes=2)
    assert [one.name for one in results] == ["covering-9", "mics-7"]
    assert results == run(some, SMOKE, Folder(tmp_path))


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (scale_named("smoke"), "--smoke --seed 1"),
        (scale_named("smoke", 700, 20.0), "--smoke --million 700 --up-to 20 --seed 1"),
        (scale_named("full", 70_000), "--million 70000 --seed 1"),
    ],
)
def test_the_command_that_makes_a_figure_again_says_every_size(scale, words):
    settings = settings_of(RunSettings(scale))
    result = FigureResult("mics", "7", settings, {}, 0.0, (), ())
    assert result.command == f"stentor-lab reproduce mics 7 {words}"


def test_a_folder_without_a_file_draws_that_set(tmp_path, monkeypatch):
    monkeypatch.setenv("STENTOR_DATA", str(tmp_path))
    assert keyword_data("GN", SMOKE).about == "drawn like GN"
    (tmp_path / "gnis_us_names.psv").write_text(
        "name|class|county|state|map|lat|lon\nRed Hill|Summit|Kent|MI|Red|43.0|-85.0\n"
    )
    assert keyword_data("GN", SMOKE).about == "gnis_us_names.psv"
    assert keyword_data("CARS", SMOKE).about == "drawn like CARS"


def test_the_command_writes_the_report(tmp_path):
    output = tmp_path / "out"
    words = ["reproduce", "mics", "7", "--smoke", "--output", str(output)]
    summary = ["--summary", str(tmp_path / "summary.md")]
    result = CliRunner().invoke(app, [*words, *summary])
    assert result.exit_code == 0, result.output
    page = (output / "report.html").read_text("utf-8")
    assert "stentor-lab reproduce mics 7 --smoke --seed 1" in page
    assert "data:image/svg+xml;base64," in page
    assert "src='http" not in page
    whole = json.loads((output / "report.json").read_text("utf-8"))
    assert [one["number"] for one in whole["figures"]] == ["7"]
    assert {path.suffix for path in (output / "figures").iterdir()} == {".png", ".svg"}
    assert "## MICS" in (tmp_path / "summary.md").read_text("utf-8")


def test_the_command_lists_every_figure():
    result = CliRunner().invoke(app, ["reproduce", "--list"])
    assert len(result.output.splitlines()) == sum(len(one.experiments) for one in papers().values())


@pytest.mark.parametrize(("paper", "experiment"), EVERY)
def test_every_figure_runs_at_the_smallest_size(paper, experiment):
    panels = experiment.measure(SMOKE)
    assert panels
    for panel in panels:
        assert panel.curves
        assert "data" in panel.facts
        assert all(point.samples for curve in panel.curves for point in curve.points)
    for claim in experiment.judged(panels):
        assert claim["verdict"] in {"agrees", "partly", "disagrees"}
        assert claim["rule"]
        assert claim["seen"]


def test_the_committed_summary_has_every_paper_and_small_pictures():
    page = PAGE.parents[1] / "docs" / "reproduction.md"
    text = page.read_text("utf-8")
    assert all(f"## {paper.title}\n" in text for paper in papers().values())
    pictures = [page.parent / name for name in re.findall(r"\]\((pictures/[^)]+)\)", text)]
    assert pictures
    assert sum(one.stat().st_size for one in pictures) < 1_000_000
