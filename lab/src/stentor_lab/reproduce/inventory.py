"""lab/inventory.md: every figure and table of the evaluations, made from the registry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stentor_lab.baselines.rivals import RIVALS
from stentor_lab.reproduce.experiment import Paper

#: Where the page is, in a checkout.
PAGE = Path(__file__).parents[3] / "inventory.md"

_HEAD = (
    "# The papers' figures and tables, and what we run for each\n"
    "Made by `stentor-lab reproduce --inventory` from the registry that the command runs; "
    "a test keeps both equal.\n`stentor-lab reproduce PAPER FIGURE` runs one of them. A word "
    "instead of a number is an axis that the paper varies without a figure of its own.\n\n"
)


def inventory(papers: Iterable[Paper]) -> str:
    """The page."""
    parts = [_HEAD]
    for paper in papers:
        parts += [
            f"## {paper.title} (`{paper.key}`)\n{paper.authors}; {paper.section}.\n\n",
            "| | figure or table | varied | measured | our experiment |\n|---|---|---|---|---|\n",
        ]
        for one in paper.experiments:
            ours = one.ours if one.measure else f"**Not run:** {one.why_not}"
            cells = (f"`{one.number}`", f"{one.name}: {one.title}", one.varied, one.measured, ours)
            parts.append(f"| {' | '.join(map(_cell, cells))} |\n")
        if paper.elsewhere:
            parts.append("\nNo measurements: ")
            parts.append("; ".join(f"{name} ({why})" for name, why in paper.elsewhere) + ".\n")
        parts.append("\n")
    parts.append(_rivals())
    return "".join(parts)


def _rivals() -> str:
    head = (
        "## Rivals\nIn `stentor_lab.baselines`, in Numba like the product's structures, exact by "
        "the product's verifier, behind its contract suite (`lab/tests/test_rivals.py`).\n\n"
    )
    lines = [
        head,
        "| name | in figures | from | beside a public program |\n|---|---|---|---|\n",
    ]
    for name, entry in RIVALS.items():
        cells = f"`{name}`", entry.shown, entry.source, entry.public
        lines.append(f"| {' | '.join(map(_cell, cells))} |\n")
    return "".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
