"""What share of a source's records is rejected, and why: where it is most of them, a run stops."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from stentor.errors import RecordError
from stentor.wire.rejected import Rejected

#: The first records of a source by which it is judged; of a smaller one, all, if there are so many.
FIRST_RECORDS, LEAST_RECORDS = 1_000, 10
#: How many reasons are told.
_MOST_REASONS: Final = 3
#: What differs from record to record in a sentence: quoted texts and numbers.
_DETAIL: Final = re.compile(r"'[^']*+'|\"[^\"]*+\"|[0-9]++")

MostRejectedOption = Annotated[
    float,
    typer.Option(
        "--most-rejected",
        min=0.0,
        max=1.0,
        help="Stop (exit code 3) where more than this share of the first 1,000 records of a file "
        "is rejected; 1 goes on whatever is.",
    ),
]


class RejectedShare:
    """Records of several sources, taken and rejected."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._good: Counter[Path] = Counter()
        self._bad: Counter[Path] = Counter()
        self._judged: set[Path] = set()
        self._reasons: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def reject(self, source: Path, rejected: Rejected) -> None:
        """Count a bad record of *source*."""
        self._bad[source] += 1
        self.count_reason(rejected.reason)

    def count_reason(self, reason: str, records: int = 1) -> None:
        """Count a *reason*; those that differ in texts and numbers alone are one."""
        line = reason.partition("\n")[0]
        form = _DETAIL.sub("…", line)
        self._reasons[form] += records
        self._examples.setdefault(form, line[:200])

    def take(self, source: Path, good: int) -> None:
        """Count so many more *good* records of *source*; judge once there are enough."""
        self._good[source] += good
        if source not in self._judged and self._seen(source) >= FIRST_RECORDS:
            self._judge(source)

    def finish(self, source: Path) -> None:
        """Judge *source*, of which all is read, where it has fewer records than are judged by."""
        if source not in self._judged:
            self._judge(source)

    def judge(self, name: str, seen: int, bad: int) -> None:
        """A RecordError where too many of the records *seen* are bad."""
        if seen < LEAST_RECORDS or bad <= self._most * seen:
            return
        reasons = "".join(f"\n  {reason}" for reason in self.reasons)
        raise RecordError(
            f"{name}: {bad:,} of the first {seen:,} records are rejected ({bad / seen:.0%}), so a "
            f"column or a type is likely to be wrong{reasons}\nCorrect it and start again; "
            "--most-rejected 1 goes on all the same"
        )

    def _judge(self, source: Path) -> None:
        self._judged.add(source)
        self.judge(str(source), self._seen(source), self._bad[source])

    def _seen(self, source: Path) -> int:
        return self._good[source] + self._bad[source]

    @property
    def reasons(self) -> list[str]:
        """The most frequent ones, each with how many records and an example."""
        most = self._reasons.most_common(_MOST_REASONS)
        return [f"{count:,} × {self._examples[form]}" for form, count in most]

    def summary(self, *, as_json: bool) -> dict[str, Any]:
        """Which share was rejected, and why."""
        bad = self._bad.total()
        counts: dict[str, Any] = {"rejected": bad}
        if bad:
            counts["share rejected"] = round(bad / (bad + self._good.total()), 4)
            counts["reasons"] = self.reasons if as_json else "; ".join(self.reasons)
        return counts
