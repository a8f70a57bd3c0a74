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
`lab/inventory.md` lists them, with what cannot be run and why. This page is made by a run
(`stentor-lab reproduce --quick --summary docs/reproduction.md`), which also leaves a page with
all curves, pictures and numbers.

Each claim is judged by a written rule, which that page shows: *agrees*, *partly*, *disagrees*.
All contenders of a point gave the same answer before they were timed; the block scan, `packed`
and `auto` stand in every figure of matching. Sizes of a quick run are a fiftieth of the papers',
so factors that grow with size are smaller here. The machine was shared with other work: times are
processor times, to be read as ratios.

"""


def write_summary(
    path: Path, papers: Sequence[Paper], results: Sequence[FigureResult], facts: Mapping[str, Any]
) -> None:
    """Write the summary of *results* into *path*, its pictures into `pictures/` beside it."""
    folder = path.parent / _PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {result.name: result for result in results}
    lines = [_head(facts, results)]
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
                size = by_name[f"{paper.key}-{one.number}"].settings["a million is"]
                smaller = "" if size == facts["a million is"] else f" ({size:,})"
                is_numbered = one.number[0].isdigit() or "table" in one.number
                cells = (
                    (one.name if is_numbered else one.title) + smaller,
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


def _head(facts: Mapping[str, Any], results: Sequence[FigureResult]) -> str:
    seconds = sum(result.seconds for result in results)
    listed = ", ".join(f"{name} {fact}" for name, fact in facts.items())
    sizes = {result.settings["a million is"] for result in results} - {facts["a million is"]}
    marked = " Where a number stands behind a figure, so many stood for a million."
    return (
        _HEAD + f"{len(results)} figures and tables in {seconds / 60:.1f} minutes. {listed}."
        f"{marked if sizes else ''}\n"
    )


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
