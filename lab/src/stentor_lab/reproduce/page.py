"""The report: one page of HTML that needs nothing else, with every picture inside it."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from stentor_lab.report import number
from stentor_lab.reproduce.claims import VERDICTS
from stentor_lab.reproduce.curves import Panel
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.run import FigureResult

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:74rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.6rem}h2{margin-top:3rem;border-bottom:2px solid #ddd}h3{margin-top:2.2rem}
img{max-width:100%}code{background:#f3f3f3;padding:.1em .3em}small,.facts{color:#666}
table{border-collapse:collapse;margin:.6rem 0}td,th{padding:.2rem .6rem;text-align:left;
border-bottom:1px solid #e5e5e5;vertical-align:top;font-size:.86rem}td.n{text-align:right}
.agrees{color:#14713a}.partly{color:#a06800}.disagrees{color:#b3261e}b.v{white-space:nowrap}
details{margin:.4rem 0}nav a{margin-right:.9rem}
"""

Pictures = Mapping[str, Mapping[str, bytes]]


def page(
    papers: Sequence[Paper],
    results: Iterable[FigureResult],
    pictures: Pictures,
    facts: Mapping[str, Any],
) -> str:
    """The page of *results*, each with its picture of that name."""
    by_name = {result.name: result for result in results}
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'><title>Five papers, reproduced</title>",
        f"<style>{_STYLE}</style><h1>Five papers, reproduced</h1>",
        f"<p class=facts>{_listed(facts)}</p>",
        _rules(),
        "<nav>",
        *(f"<a href='#{paper.key}'>{escape(paper.title)}</a>" for paper in papers),
        "</nav>",
        _overview(papers, by_name),
    ]
    for paper in papers:
        parts.append(f"<h2 id='{paper.key}'>{escape(paper.title)}</h2>")
        parts.append(f"<p>{escape(paper.authors)}; {escape(paper.section)}</p>")
        for experiment in paper.experiments:
            result = by_name.get(f"{paper.key}-{experiment.number}")
            parts.append(_experiment(paper, experiment, result, pictures))
    return "\n".join(parts) + "</html>\n"


def _rules() -> str:
    return (
        "<p>Each claim of a paper is judged by a written rule, the same for every run, which "
        "stands beside it. Times are processor times, so that other work on the machine counts "
        "little: medians with their spread; a picture's lines are medians, its bars "
        "the lowest and the highest repetition. Where the numbers of a panel say “answers equal”, "
        "all contenders of a point gave the same answer before they were timed, and so many "
        "pairs were compared; elsewhere nothing was. The work that was counted stands beside the "
        "times, and which data was read or drawn below each picture. A reason is told only where "
        "it was tested: by an experiment that is named, or by the work that was counted.</p>"
    )


def _overview(papers: Sequence[Paper], by_name: Mapping[str, FigureResult]) -> str:
    rows = []
    for paper in papers:
        of_paper = [result for result in by_name.values() if result.paper == paper.key]
        counted = Counter(claim["verdict"] for result in of_paper for claim in result.claims)
        cells = "".join(f"<td class='n {v}'>{counted[v]}" for v in VERDICTS)
        rows.append(f"<tr><td>{escape(paper.title)}<td class=n>{len(of_paper)}{cells}")
    head = "".join(f"<th>{verdict}" for verdict in VERDICTS)
    return f"<table><tr><th>paper<th>figures and tables{head}{''.join(rows)}</table>"


def _experiment(
    paper: Paper, experiment: Experiment, result: FigureResult | None, pictures: Pictures
) -> str:
    anchor = f"{paper.key}-{experiment.number}"
    parts = [
        f"<h3 id='{anchor}'>{escape(experiment.name)}: {escape(experiment.title)}</h3>",
        f"<p><b>Varied</b> {escape(experiment.varied)}.",
        f" <b>Measured</b> {escape(experiment.measured)}.",
        f" <b>Ours</b> {escape(experiment.ours)}</p>",
    ]
    if result is None:
        why = experiment.why_not or "not in this run"
        return "".join([*parts, f"<p><b>Not run:</b> {escape(why)}</p>"])
    if anchor in pictures:
        data = base64.b64encode(pictures[anchor]["svg"]).decode()
        parts.append(
            f"<img alt='{escape(experiment.title)}' src='data:image/svg+xml;base64,{data}'>"
        )
    parts.append(_claims(result.claims))
    parts.append(
        f"<p>Again: <code>{escape(result.command)}</code> <small>("
        f"{result.seconds:.0f} s of the processor; "
        f"a million is {result.settings['a million is']:,}; "
        f"data: {escape(result.data)})</small></p>"
    )
    parts.extend(_numbers(panel) for panel in result.panels)
    return "\n".join(parts)


def _claims(claims: Sequence[Mapping[str, Any]]) -> str:
    if not claims:
        return ""
    rows = [
        f"<tr><td>{escape(one['claim'])}<td><b class='v {one['verdict']}'>{one['verdict']}</b>"
        f"<td>{escape(one['seen'])}<td>{escape(one['because'])}<td><small>{escape(one['rule'])}"
        for one in claims
    ]
    head = "<tr><th>the paper says<th>verdict<th>we saw<th>why<th>rule"
    return f"<table>{head}{''.join(rows)}</table>"


def _numbers(panel: Panel) -> str:
    """The numbers behind a panel: medians, spread, and what was counted."""
    rows = []
    for curve in panel.curves:
        for point in curve.points:
            spread = f"{number(min(point.samples))}–{number(max(point.samples))}"
            work = ", ".join(f"{name} {number(value)}" for name, value in point.work.items())
            rows.append(
                f"<tr><td>{escape(curve.name)}<td>{escape(str(point.x))}"
                f"<td class=n>{number(point.value)}<td>{spread}<td>{escape(work)}"
            )
    head = f"<tr><th><th>{escape(panel.x)}<th>{escape(panel.y)}<th>spread<th>counted"
    facts = f"<p class=facts>{_listed(panel.facts)}</p>" if panel.facts else ""
    return (
        f"<details><summary>{escape(panel.title)}: numbers</summary>{facts}"
        f"<table>{head}{''.join(rows)}</table></details>"
    )


def _listed(facts: Mapping[str, Any]) -> str:
    return " · ".join(
        escape(f"{name} {fact:,}" if isinstance(fact, int) else f"{name} {fact}")
        for name, fact in facts.items()
    )
