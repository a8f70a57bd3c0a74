"""A figure or table of a paper as an entry of the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stentor_lab.reproduce.claims import Claim, Panels
from stentor_lab.reproduce.curves import Panel
from stentor_lab.reproduce.scale import RunSettings

Measure = Callable[[RunSettings], tuple[Panel, ...]]


@dataclass(frozen=True)
class Experiment:
    """What is varied and measured; *measure* runs it, or *why_not* says why nothing can.

    *number* is the paper's (`13`, `table-5`), or a word where the paper has no figure of its own.
    """

    number: str
    title: str
    varied: str
    measured: str
    ours: str
    measure: Measure | None = None
    claims: tuple[Claim, ...] = ()
    why_not: str = ""
    weight: float = 1.0  # about how long it takes, beside the others

    @property
    def name(self) -> str:
        """`Figure 13`, `Table 5`, or its own title."""
        kind, _, rest = self.number.partition("-")
        if kind == "table":
            return f"Table {rest.upper() if not rest.isdigit() else rest}"
        return f"Figure {self.number}" if self.number[0].isdigit() else "Beyond the figures"

    def judged(self, panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
        """Each claim with its verdict, as plain data."""
        by_key: Panels = {panel.key: panel for panel in panels}
        found = []
        for claim in self.claims:
            judgement = claim.rule.judge(by_key)
            found.append(
                {
                    "claim": claim.says,
                    "rule": claim.rule.text,
                    "verdict": judgement.verdict,
                    "seen": judgement.seen,
                    "because": claim.explained(by_key, judgement.verdict),
                }
            )
        return found


@dataclass(frozen=True)
class Paper:
    """A paper and all figures and tables of its evaluation, in its order."""

    key: str  # what the command line calls it
    title: str
    authors: str
    section: str
    experiments: tuple[Experiment, ...]
    elsewhere: tuple[tuple[str, str], ...] = ()  # figures and tables that measure nothing

    def experiment(self, number: str) -> Experiment | None:
        """The one called *number*."""
        return next((one for one in self.experiments if one.number == number), None)
