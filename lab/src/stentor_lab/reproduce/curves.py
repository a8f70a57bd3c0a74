"""What an experiment gives: panels of curves, as plain data for pictures, pages and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

X = float | str


@dataclass(frozen=True)
class Point:
    """One measurement: its repetitions, and the work that was counted beside them."""

    x: X
    samples: tuple[float, ...]
    work: Mapping[str, float] = field(default_factory=dict)
    is_mean: bool = False  # samples are parts of one whole, of which the mean counts

    @property
    def value(self) -> float:
        """What stands for the samples: their median, or their mean."""
        return fmean(self.samples) if self.is_mean else median(self.samples)

    def to_dict(self) -> dict[str, Any]:
        told = {"x": self.x, "samples": list(self.samples), "work": dict(self.work)}
        return {**told, "is_mean": True} if self.is_mean else told


@dataclass(frozen=True)
class Curve:
    """One contender over what varies; *is_paper* where the numbers are those that it prints."""

    name: str
    points: tuple[Point, ...]
    is_paper: bool = False

    def at(self, x: X) -> Point | None:
        """The point at *x*, if there is one."""
        return next((point for point in self.points if point.x == x), None)


@dataclass(frozen=True)
class Panel:
    """A diagram: what varies, what is measured."""

    key: str  # what claims call it
    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)  # workload, sizes, data

    def curve(self, name: str) -> Curve:
        """The curve called *name*."""
        found = next((curve for curve in self.curves if curve.name == name), None)
        if found is None:
            raise KeyError(f"no curve {name!r} in {self.key!r}: {[c.name for c in self.curves]}")
        return found

    @property
    def xs(self) -> list[X]:
        """What varies, in order, of all curves together."""
        return list(dict.fromkeys(point.x for curve in self.curves for point in curve.points))

    def to_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "log_x": self.log_x,
            "log_y": self.log_y,
            "facts": dict(self.facts),
            "curves": [
                {
                    "name": curve.name,
                    "is_paper": curve.is_paper,
                    "points": [point.to_dict() for point in curve.points],
                }
                for curve in self.curves
            ],
        }


def _point_of(raw: Mapping[str, Any]) -> Point:
    return Point(raw["x"], tuple(raw["samples"]), raw["work"], raw.get("is_mean", False))


def panel_of(raw: Mapping[str, Any]) -> Panel:
    """The panel that `to_dict` wrote."""
    curves = tuple(
        Curve(
            curve["name"],
            tuple(map(_point_of, curve["points"])),
            curve["is_paper"],
        )
        for curve in raw["curves"]
    )
    rest = {name: raw[name] for name in ("key", "title", "x", "y", "log_x", "log_y", "facts")}
    return Panel(curves=curves, **rest)


def paper_curve(values: Iterable[tuple[X, float]], name: str = "the paper") -> Curve:
    """What a paper prints, as a curve beside ours."""
    return Curve(name, tuple(Point(x, (value,)) for x, value in values), is_paper=True)


def derived(
    panel: Panel, key: str, y: str, figure: str, *, title: str = "", log_y: bool = True
) -> Panel:
    """A panel of a *figure* that was counted beside the times of *panel*."""
    curves = []
    for curve in panel.curves:
        points = tuple(
            Point(point.x, (point.work[figure],)) for point in curve.points if figure in point.work
        )
        if points:
            curves.append(Curve(curve.name, points))
    return Panel(
        key, title or panel.title, panel.x, y, tuple(curves), panel.log_x, log_y, panel.facts
    )
