"""How much is measured: the same experiments at three sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from stentor.errors import SettingsError
from stentor_lab.result import BenchOptions, Progress, to_stderr
from stentor_lab.workloads import real_files

Value = TypeVar("Value")


@dataclass(frozen=True)
class Scale:
    """A size of the whole reproduction; *base* is what stands for a million subscriptions."""

    name: str
    base: int
    events: int
    repetitions: int
    points: int  # of a curve, at most
    seconds: float  # that one sample may take, about
    slow: int  # subscriptions at most, where a rival takes milliseconds for each
    about: str
    moving: float = 1.0  # of these sizes, where subscribers move
    up_to: float = 5.0  # million, where the papers go on to 20

    def thinned(self, values: Sequence[Value]) -> list[Value]:
        """So many of *values* as a curve may have: the ends, and some between."""
        if len(values) <= self.points:
            return list(values)
        step = (len(values) - 1) / max(1, self.points - 1)
        return [values[round(position * step)] for position in range(self.points)]

    def millions(self, values: Sequence[float]) -> list[float]:
        """Those of *values*, in millions, that a run goes up to."""
        return self.thinned([value for value in values if value <= self.up_to])

    def of(self, millions: float) -> int:
        """What stands for so many millions here."""
        return max(64, round(self.base * millions))


SCALES: Final = {
    one.name: one
    for one in (
        Scale("smoke", 600, 48, 1, 2, 0.01, 200, "a million is 600: does it run at all?"),
        Scale(
            "quick",
            10_000,
            512,
            3,
            3,
            0.03,
            1_000,
            "a million is 10,000, of moving subscriptions 3,000; three points a curve",
            moving=0.3,
        ),
        Scale("full", 1_000_000, 10_000, 5, 10, 1.0, 100_000, "the papers' own sizes, every point"),
    )
}


def scale_named(name: str, base: int | None = None, up_to: float = 5.0) -> Scale:
    """The scale *name*; with *base* another number stands for a million."""
    if name not in SCALES:
        raise SettingsError(f"no scale {name!r}; there are {', '.join(SCALES)}")
    if base is not None and base < 64:
        raise SettingsError(f"{base} in place of a million; take 64 or more")
    if not up_to >= 1.0:
        raise SettingsError(f"up to {up_to} million; take 1 or more")
    scale = SCALES[name]
    return replace(scale, base=base or scale.base, up_to=up_to)


@dataclass(frozen=True)
class RunSettings:
    """What an experiment is run with."""

    scale: Scale
    seed: int = 1
    progress: Progress = field(default=to_stderr, compare=False)

    @property
    def is_real(self) -> bool:
        """Whether the user named a folder of real data."""
        return real_files.is_there()

    def options(self, size: int | None = None) -> BenchOptions:
        """The same as the options of a benchmark."""
        return BenchOptions(size, self.scale.repetitions, self.seed, self.progress)
