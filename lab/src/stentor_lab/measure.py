"""Rows of a table measured fairly: they agree on the answer first, then take turns.

Repetitions are interleaved, so that whatever else the machine does slows all rows alike; the median
leaves out what it slowed once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stentor.errors import DisagreementError
from stentor_lab.result import Progress, Row

Sample = Callable[[], float]  # does the work once; the seconds it took
Answer = tuple[npt.NDArray[np.generic], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A row to be measured.

    *items* is how many things one sample works on. *answer* does the work and gives what all rows
    of the table, or of the same *group*, must agree on; it also warms up caches and compiled code.
    A case without one is warmed up by a sample that does not count, unless it is *cold*.
    """

    name: str
    sample: Sample
    items: int = 1
    answer: Callable[[], Answer] | None = None
    group: str = ""
    cold: bool = False
    most: int | None = None  # repetitions, where one takes long
    figures: Mapping[str, float] = field(default_factory=dict)


def stopwatch(work: Callable[[], object]) -> Sample:
    """A sample of *work*, by the clock on the wall: threads and waiting count."""

    def sample() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return sample


def cpu_stopwatch(work: Callable[[], object]) -> Sample:
    """A sample of *work*, by the processor time of all threads: what else runs counts little."""

    def sample() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return sample


def measure(
    cases: Sequence[Case], repetitions: int, progress: Progress, title: str
) -> tuple[Row, ...]:
    """A row for each of *cases*; a DisagreementError where their answers differ."""
    progress(f"{title}: comparing answers")
    _warm_up(cases, title)
    seconds: dict[str, list[float]] = {case.name: [] for case in cases}
    for repetition in range(repetitions):
        progress(f"{title}: repetition {repetition + 1} of {repetitions}")
        for case in cases:
            if case.most is None or repetition < case.most:
                seconds[case.name].append(case.sample() / case.items)
    return tuple(Row(case.name, tuple(seconds[case.name]), case.figures) for case in cases)


def _warm_up(cases: Sequence[Case], title: str) -> None:
    first: dict[str, tuple[str, Answer]] = {}
    for case in cases:
        if case.answer is not None:
            answer = case.answer()
            name, known = first.setdefault(case.group, (case.name, answer))
            if not _equal(known, answer):
                raise DisagreementError(
                    f"{title}: {case.name!r} answers otherwise than {name!r}, so their times "
                    "mean nothing; this is a defect: please report it with the workload's seed"
                )
        elif not case.cold:
            case.sample()


def _equal(left: Answer, right: Answer) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        for one, other in zip(left, right, strict=True)
    )
