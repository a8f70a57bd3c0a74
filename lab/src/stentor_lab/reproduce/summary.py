"""docs/reproduction.md: what visitors see of an actual run, with a few small pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from stentor_lab.reproduce.claims import VERDICTS
from stentor_lab.reproduce.draw import pictures
from stentor_lab.reproduce.experiment import Paper
from stentor_lab.reproduce.run import FigureResult

#: The figures whose pictures stand in the summary, and those of their panels.
SHOWN: Final = {
    "ap-tree-15": ("drawn",),
    "ap-tree-13": ("drawn",),
    "be-star-tree-size": ("uniform", "zipf"),
    "mo-tree-4": ("time",),
    "mics-10": (),
    "covering-12": (),
}
_PICTURES: Final = "pictures"
_DPI: Final = 72
_HEAD: Final = """# The five papers, reproduced
Every figure and table of the papers' evaluations is an experiment of the laboratory:
[the inventory](lab/inventory.md) lists them, with what is not run and why; [a page](lab/data.md)
says which real data they read, and [another](lab/own_experiments.md) how to add one. This page is
made by a run (`{command}`),
which also leaves a page with all curves, pictures and numbers.

Each claim is judged by a written rule, which that page shows: *agrees*, *partly*, *disagrees*. Some
rules were changed after results had been seen, so the counts below are a reading, not a test that
was fixed beforehand. Where contenders answer the same question, they gave equal answers before they
were timed, and that page says on how many pairs; building, inserting and counting are not compared.
Sizes are far below the papers', so factors that grow with size are smaller here: a million
subscriptions are {million:,} here, and axes named in millions mean so many times that. The machine
was shared with other work: times are processor times, to be read as ratios.

"""


def write_summary(
    path: Path,
    papers: Sequence[Paper],
    results: Sequence[FigureResult],
    facts: Mapping[str, Any],
    command: str,
) -> None:
    """Write the summary of *results*, which *command* gave, into *path*; its pictures beside it."""
    folder = path.parent / _PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {result.name: result for result in results}
    lines = [_head(facts, papers, results, command)]
    for paper in papers:
        of_paper = [one for one in paper.experiments if f"{paper.key}-{one.number}" in by_name]
        counted = Counter(
            claim["verdict"]
            for one in of_paper
            for claim in by_name[f"{paper.key}-{one.number}"].claims
        )
        told = ", ".join(f"{counted[verdict]} {verdict}" for verdict in VERDICTS)
        lines.append(f"## {paper.title}\n{paper.authors}; {paper.section}. Claims: {told}.\n")
        for one in of_paper:
            name = f"{paper.key}-{one.number}"
            if name in SHOWN:
                panels = [p for p in by_name[name].panels if p.key in SHOWN[name]]
                title = f"{one.name}: {one.title}"
                drawn = pictures(by_name[name], title, panels, dpi=_DPI)["png"]
                (folder / f"reproduction_{name}.png").write_bytes(drawn)
                lines.append(f"![{title}]({_PICTURES}/reproduction_{name}.png)\n")
        lines += ["| | the paper says | verdict | we saw | why |", "|---|---|---|---|---|"]
        for one in of_paper:
            for claim in by_name[f"{paper.key}-{one.number}"].claims:
                is_numbered = one.number[0].isdigit() or "table" in one.number
                cells = (
                    one.name if is_numbered else one.title,
                    claim["claim"],
                    f"**{claim['verdict']}**",
                    claim["seen"],
                    claim["because"],
                )
                lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
        rest = [
            f"{one.name} ({one.title})"
            for one in paper.experiments
            if f"{paper.key}-{one.number}" not in by_name
        ]
        if rest:
            lines.append(f"\nNot in this run: {', '.join(rest)}.")
        lines.append("")
    path.write_text("\n".join(lines), "utf-8")


def _head(
    facts: Mapping[str, Any],
    papers: Sequence[Paper],
    results: Sequence[FigureResult],
    command: str,
) -> str:
    seconds = sum(result.seconds for result in results)
    listed = ", ".join(f"{name} {fact}" for name, fact in facts.items())
    every = sum(1 for paper in papers for one in paper.experiments if one.measure)
    read = dict.fromkeys(one for result in results for one in result.data.split("; "))
    return (
        _HEAD.format(command=command, million=facts["a million is"])
        + f"{len(results)} of {every} figures and tables that can be run, "
        f"{seconds / 60:.1f} minutes of processor time. "
        f"{listed}. Data, by panel: {', '.join(dict.fromkeys(', '.join(read).split(', ')))}.\n"
    )


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
