"""`stentor-lab reproduce`: the papers' figures and tables, theirs beside ours."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from stentor._files import replace
from stentor.errors import SettingsError
from stentor_lab.reproduce.claims import VERDICTS
from stentor_lab.reproduce.draw import pictures
from stentor_lab.reproduce.inventory import PAGE, inventory
from stentor_lab.reproduce.page import page
from stentor_lab.reproduce.registry import Chosen, chosen, papers
from stentor_lab.reproduce.run import FigureResult, Folder, run, settings_of, sizes_of
from stentor_lab.reproduce.scale import SCALES, RunSettings, scale_named
from stentor_lab.reproduce.summary import write_summary
from stentor_lab.result import this_machine, to_stderr
from stentor_lab.workloads.real_files import VARIABLE


def command(
    paper: Annotated[
        str | None, typer.Argument(help="`ap-tree`, `mics`, …; all papers without.")
    ] = None,
    figure: Annotated[
        str | None, typer.Argument(help="`13`, `table-5`, …; all of the paper without.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=SCALES["quick"].about)] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help=SCALES["smoke"].about)] = False,
    data: Annotated[
        Path | None, typer.Option(help="The folder of real data; drawn data without.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Where results are kept, and a later run goes on.")
    ] = Path("reproduction"),
    million: Annotated[
        int | None, typer.Option(help="How many subscriptions stand for a million.")
    ] = None,
    up_to: Annotated[
        float, typer.Option(help="Millions that figures of growth go up to: the papers' are 20.")
    ] = 5.0,
    seed: Annotated[int, typer.Option(help="Of the generated workloads.")] = 1,
    processes: Annotated[
        int, typer.Option(help="Figures that are measured at a time; times are processor times.")
    ] = 1,
    again: Annotated[bool, typer.Option("--again", help="Measure anew what is kept.")] = False,
    summary: Annotated[
        Path | None, typer.Option(help="Write a summary in Markdown, pictures beside it.")
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Tell what there is.")] = False,
    write_inventory: Annotated[
        bool, typer.Option("--inventory", help="Write lab/inventory.md from the registry.")
    ] = False,
) -> None:
    """Run the papers' experiments again, and write one report of theirs beside ours.

    stentor-lab reproduce ap-tree 13 --quick
    """
    if list_only:
        print("\n".join(listed(paper)))
        return
    if write_inventory:
        replace(PAGE, inventory(papers().values()).encode())
        return
    if quick and smoke:
        raise SettingsError("--quick and --smoke are two sizes; take one of them")
    if processes < 1:
        raise SettingsError(f"{processes} processes; take 1 or more")
    if data is not None:
        if not data.is_dir():
            raise SettingsError(f"--data is {data}, which is no folder; see lab/data.md")
        os.environ[VARIABLE] = str(data)
    scale = scale_named("quick" if quick else "smoke" if smoke else "full", million, up_to)
    settings = RunSettings(scale, seed)
    some = chosen(paper, figure)
    results = run(some, settings, Folder(output), again=again, processes=processes)
    path = write_report(some, results, settings, output)
    if summary is not None:
        words = ["stentor-lab reproduce", *(one for one in (paper, figure) if one)]
        words += sizes_of(settings_of(settings))
        words += [f"--processes {processes}"] if processes > 1 else []
        told = " ".join((*words, "--summary docs/reproduction.md"))
        write_summary(summary, list(papers().values()), results, facts_of(settings), told)
    counted = Counter(claim["verdict"] for result in results for claim in result.claims)
    for verdict in VERDICTS:
        print(f"{verdict:<10} {counted[verdict]}")
    to_stderr(f"the report: {path}")


def listed(paper: str | None = None) -> list[str]:
    """A line for each figure and table."""
    lines = []
    for key, one in papers().items():
        if paper in (None, key):
            lines += [
                f"{key:<13} {each.number:<13} {each.title}"
                + ("" if each.measure else f" (cannot be run: {each.why_not})")
                for each in one.experiments
            ]
    return lines


def facts_of(settings: RunSettings) -> dict[str, Any]:
    """What a reader needs to judge a run."""
    given = {name: one for name, one in settings_of(settings).items() if name != "data"}
    return {**given, **this_machine()}


def write_report(
    some: list[Chosen], results: list[FigureResult], settings: RunSettings, output: Path
) -> Path:
    """Pictures, JSON and the page of *results* in the folder *output*; the page."""
    titles = {(paper.key, one.number): one for paper, one in some}
    folder = Folder(output)
    folder.figures.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for result in results:
        experiment = titles[result.paper, result.number]
        drawn[result.name] = pictures(result, f"{experiment.name}: {experiment.title}")
        for kind, picture in drawn[result.name].items():
            replace(folder.figures / f"{result.name}.{kind}", picture)
    facts = facts_of(settings)
    whole = {"facts": facts, "figures": [result.to_dict() for result in results]}
    replace(output / "report.json", json.dumps(whole, ensure_ascii=False).encode())
    keys = {paper.key for paper, _ in some}
    shown = [paper for key, paper in papers().items() if key in keys]
    path = output / "report.html"
    replace(path, page(shown, results, drawn, facts).encode())
    return path
