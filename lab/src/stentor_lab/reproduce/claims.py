"""What a paper claims, and written rules that judge it by our curves.

A rule looks at medians. Within NOISE two are equal. The verdict is one of agrees, partly and
disagrees; what was compared is told with it, and the work that was counted beside the times. Why
something is as it is, is said only where an experiment tested it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Protocol

from stentor_lab.report import number
from stentor_lab.reproduce.curves import Curve, Panel, X

AGREES, PARTLY, DISAGREES = "agrees", "partly", "disagrees"
VERDICTS: Final = (AGREES, PARTLY, DISAGREES)
#: Two medians nearer than this are equal.
NOISE: Final = 1.1
NOT_EXPLAINED: Final = "Not explained: nothing was tested that would tell why."
#: What is counted beside times, in the order in which it is asked for.
WORK: Final = ("entries/event", "candidates/event", "points/query")

Panels = Mapping[str, Panel]


@dataclass(frozen=True)
class Judgement:
    """What a rule says: the verdict, and the numbers that it comes from."""

    verdict: str
    seen: str


class Rule(Protocol):
    """A rule that judges by panels; `text` says how, in words."""

    @property
    def text(self) -> str: ...

    def judge(self, panels: Panels) -> Judgement: ...


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, its rule, and why ours is as it is.

    *because* is a sentence, or makes one from the panels: an explanation that was tested.
    """

    says: str
    rule: Rule
    because: str | Callable[[Panels], str] = ""

    def explained(self, panels: Panels, verdict: str) -> str:
        """The explanation; where there is none, that it is not explained; and the counted work."""
        told = self.because if isinstance(self.because, str) else self.because(panels)
        if not told and verdict != AGREES:
            told = NOT_EXPLAINED
        counted = self.rule.work(panels) if isinstance(self.rule, Less) else ""
        return " ".join(part for part in (told, counted) if part)


def _both(panel: Panel, one: str, other: str) -> list[tuple[X, float, float]]:
    left, right = panel.curve(one), panel.curve(other)
    pairs = []
    for point in left.points:
        beside = right.at(point.x)
        if beside is not None:
            pairs.append((point.x, point.value, beside.value))
    return pairs


@dataclass(frozen=True)
class Less:
    """*one* takes less than each of *others*, everywhere in the panel; perhaps so many *times*."""

    panel: str
    one: str
    others: tuple[str, ...]
    times: Mapping[str, float] | None = None  # the paper's factors, by contender

    @property
    def text(self) -> str:
        rule = (
            f"{self.one} takes less than {', '.join(self.others)} at every point (agrees), "
            "at half of them or more (partly), else disagrees"
        )
        if self.times:
            factors = ", ".join(f"{name} {factor:g}×" for name, factor in self.times.items())
            rule += (
                f"; and at the last point by at least half of the paper's factor ({factors}), "
                "else partly"
            )
        return rule + f"; equal within {NOISE:g}× counts as half"

    def judge(self, panels: Panels) -> Judgement:
        panel = panels[self.panel]
        won, points, small, seen = 0.0, 0, [], []
        for other in self.others:
            pairs = _both(panel, self.one, other)
            ratios = [_ratio(theirs, ours) for _, ours, theirs in pairs]
            points += len(ratios)
            won += _won(ratios)
            if ratios:
                seen.append(f"{other} takes {number(min(ratios))}–{number(max(ratios))} times")
                if self.times and other in self.times and ratios[-1] < self.times[other] / 2:
                    small.append(f"{other} {number(ratios[-1])}× of {self.times[other]:g}×")
        verdict = _verdict(won / max(1, points))
        if small:
            verdict = PARTLY if verdict == AGREES else verdict
            seen.append("below half of the paper's factor: " + ", ".join(small))
        return Judgement(verdict, f"beside {self.one}: " + "; ".join(seen))

    def work(self, panels: Panels) -> str:
        """The counted work of all at the last point."""
        panel = panels[self.panel]
        curves = [panel.curve(name) for name in (self.one, *self.others)]
        name = next(
            (one for one in WORK if all(_counted(c, one) is not None for c in curves)), None
        )
        if name is None:
            return ""
        said = (f"{curve.name} {number(_counted(curve, name) or 0.0)}" for curve in curves)
        return f"Counted at the last point, {name}: {', '.join(said)}."


def _ratio(one: float, other: float) -> float:
    return one / other if other > 0 else math.inf if one > 0 else 1.0


def _counted(curve: Curve, name: str) -> float | None:
    return curve.points[-1].work.get(name) if curve.points else None


@dataclass(frozen=True)
class Grows:
    """From the first to the last point *curves* grow by a factor between *least* and *most*."""

    panel: str
    curves: tuple[str, ...]
    least: float = 0.0
    most: float = math.inf

    @property
    def text(self) -> str:
        ends = [f"at least {self.least:g}×"] if self.least > 0 else []
        ends += [f"at most {self.most:g}×"] if self.most < math.inf else []
        return (
            f"from the first to the last point {', '.join(self.curves)} change by "
            f"{' and '.join(ends)}: all agree, some partly, none disagrees; {NOISE:g}× is noise"
        )

    def judge(self, panels: Panels) -> Judgement:
        held, seen = 0, []
        for name in self.curves:
            points = panels[self.panel].curve(name).points
            change = _ratio(points[-1].value, points[0].value)
            held += self.least / NOISE <= change <= self.most * NOISE
            seen.append(f"{name} {number(change)}×")
        verdict = AGREES if held == len(self.curves) else PARTLY if held else DISAGREES
        return Judgement(verdict, "last point over first: " + ", ".join(seen))


@dataclass(frozen=True)
class Rises:
    """*curves* rise from each point to the next, or fall where *falls*."""

    panel: str
    curves: tuple[str, ...]
    falls: bool = False

    @property
    def text(self) -> str:
        way = "falls" if self.falls else "rises"
        return (
            f"{', '.join(self.curves)} {way} from each point to the next: at all steps (agrees), "
            f"at half of them (partly); equal within {NOISE:g}× counts as half"
        )

    def judge(self, panels: Panels) -> Judgement:
        steps, seen = [], []
        for name in self.curves:
            points = panels[self.panel].curve(name).points
            ratios = [_ratio(b.value, a.value) for a, b in pairwise(points)]
            steps += [1 / r if self.falls and r > 0 else r for r in ratios]
            seen.append(f"{name} {', '.join(number(one) for one in ratios)}")
        told = f"each point over the one before: {'; '.join(seen)}"
        return Judgement(_verdict(_won(steps) / max(1, len(steps))), told)


@dataclass(frozen=True)
class Similar:
    """*curves* take at most so many times in the panel *one* what they take in *other*."""

    one: str
    other: str
    curves: tuple[str, ...]
    most: float

    @property
    def text(self) -> str:
        return (
            f"{', '.join(self.curves)} take at most {self.most:g}× in {self.one} what they take "
            f"in {self.other}: everywhere (agrees), at half of the points (partly)"
        )

    def judge(self, panels: Panels) -> Judgement:
        ratios = []
        for name in self.curves:
            theirs = panels[self.other].curve(name)
            for point in panels[self.one].curve(name).points:
                beside = theirs.at(point.x)
                if beside is not None:
                    ratios.append(_ratio(point.value, beside.value))
        share = sum(one <= self.most for one in ratios) / max(1, len(ratios))
        seen = f"{self.one} takes {number(min(ratios))}–{number(max(ratios))} times"
        return Judgement(_verdict(share), f"{seen} what {self.other} takes")


@dataclass(frozen=True)
class Near:
    """Our *curve* is within a factor of what the paper prints (*theirs*)."""

    panel: str
    curve: str
    theirs: str = "the paper"
    within: float = 2.0

    @property
    def text(self) -> str:
        return (
            f"{self.curve} is within {self.within:g}× of {self.theirs} at four points of "
            "five (agrees), at two of five (partly), else disagrees"
        )

    def judge(self, panels: Panels) -> Judgement:
        pairs = _both(panels[self.panel], self.curve, self.theirs)
        near = [max(_ratio(a, b), _ratio(b, a)) <= self.within for _, a, b in pairs]
        share = sum(near) / max(1, len(near))
        verdict = AGREES if share >= 0.8 else PARTLY if share >= 0.4 else DISAGREES
        seen = ", ".join(f"{x}: {number(a)} ({number(b)})" for x, a, b in pairs[:6])
        return Judgement(verdict, f"{self.curve} ({self.theirs}): {seen}")


@dataclass(frozen=True)
class Narrows:
    """*one* is below *other* by a smaller factor at each point than at the one before."""

    panel: str
    one: str
    other: str

    @property
    def text(self) -> str:
        return (
            f"{self.other} over {self.one} falls from each point to the next: at all steps "
            f"(agrees), at half of them (partly); equal within {NOISE:g}× counts as half"
        )

    def judge(self, panels: Panels) -> Judgement:
        factors = [_ratio(b, a) for _, a, b in _both(panels[self.panel], self.one, self.other)]
        steps = [_ratio(before, after) for before, after in pairwise(factors)]
        seen = ", ".join(f"{number(factor)}×" for factor in factors)
        verdict = _verdict(_won(steps) / max(1, len(steps)))
        return Judgement(verdict, f"{self.other} over {self.one}: {seen}")


@dataclass(frozen=True)
class Slower:
    """*one* grows by less from the first to the last point than each of *others*."""

    panel: str
    one: str
    others: tuple[str, ...]

    @property
    def text(self) -> str:
        return (
            f"from the first to the last point {self.one} grows by a smaller factor than "
            f"{', '.join(self.others)}: than all (agrees), than half (partly); equal within "
            f"{NOISE:g}× counts as half"
        )

    def judge(self, panels: Panels) -> Judgement:
        grown = {}
        for name in (self.one, *self.others):
            points = panels[self.panel].curve(name).points
            grown[name] = _ratio(points[-1].value, points[0].value)
        won = _won([_ratio(grown[name], grown[self.one]) for name in self.others])
        seen = ", ".join(f"{name} {number(factor)}×" for name, factor in grown.items())
        return Judgement(_verdict(won / len(self.others)), f"last point over first: {seen}")


@dataclass(frozen=True)
class Proportional:
    """*curves* grow by less than x does, from the first to the last point."""

    panel: str
    curves: tuple[str, ...]

    @property
    def text(self) -> str:
        return (
            f"from the first to the last point {', '.join(self.curves)} grow by a smaller factor "
            "than what varies: all (agrees), some (partly)"
        )

    def judge(self, panels: Panels) -> Judgement:
        held, seen = 0, []
        for name in self.curves:
            first, *_, last = panels[self.panel].curve(name).points
            change, more = _ratio(last.value, first.value), float(last.x) / float(first.x)
            held += change < more
            seen.append(f"{name} {number(change)}× of {number(more)}×")
        verdict = AGREES if held == len(self.curves) else PARTLY if held else DISAGREES
        return Judgement(verdict, "last point over first: " + ", ".join(seen))


_PARTS: Final[Mapping[tuple[int | None, int | None], str]] = {
    (None, None): "all points",
    (0, 1): "the first point",
    (0, 2): "the first two points",
    (1, None): "all points but the first",
    (-1, None): "the last point",
    (-2, None): "the last two points",
}


@dataclass(frozen=True)
class At:
    """*rule* at some points alone: those where x is one of *xs*, or a *part* of all."""

    rule: Rule
    panel: str
    xs: tuple[X, ...] = ()
    part: tuple[int | None, int | None] = (None, None)

    @property
    def text(self) -> str:
        where = ", ".join(map(str, self.xs)) or _PARTS[self.part]
        return f"at {where}: {self.rule.text}"

    def judge(self, panels: Panels) -> Judgement:
        panel = panels[self.panel]
        kept = self.xs or tuple(panel.xs[slice(*self.part)])
        curves = (
            replace(one, points=tuple(p for p in one.points if p.x in kept)) for one in panel.curves
        )
        return self.rule.judge({**panels, self.panel: replace(panel, curves=tuple(curves))})


@dataclass(frozen=True)
class Slows:
    """*curves* grow less for each x over the second half of the panel than over the first."""

    panel: str
    curves: tuple[str, ...]

    @property
    def text(self) -> str:
        return (
            f"for each more of x {', '.join(self.curves)} grow less between the last two points "
            "than between the first two: all (agrees), some (partly)"
        )

    def judge(self, panels: Panels) -> Judgement:
        held, seen = 0, []
        for name in self.curves:
            slopes = _slopes(panels[self.panel].curve(name))
            held += slopes[-1] < slopes[0]
            seen.append(f"{name} {number(slopes[0])} at first, {number(slopes[-1])} at last")
        verdict = AGREES if held == len(self.curves) else PARTLY if held else DISAGREES
        return Judgement(verdict, "growth for each more: " + "; ".join(seen))


def _slopes(curve: Curve) -> list[float]:
    return [
        (after.value - before.value) / (float(after.x) - float(before.x))
        for before, after in pairwise(curve.points)
    ]


@dataclass(frozen=True)
class Across:
    """*curves* take less in the panel *one* than in the panel *other*, point by point."""

    one: str
    other: str
    curves: tuple[str, ...]

    @property
    def text(self) -> str:
        return (
            f"{', '.join(self.curves)} take less in {self.one} than in {self.other} at every "
            f"point (agrees), at half of them (partly); equal within {NOISE:g}× counts as half"
        )

    def judge(self, panels: Panels) -> Judgement:
        ratios = []
        for name in self.curves:
            theirs = panels[self.other].curve(name)
            for point in panels[self.one].curve(name).points:
                beside = theirs.at(point.x)
                if beside is not None:
                    ratios.append(_ratio(beside.value, point.value))
        share = _won(ratios) / max(1, len(ratios))
        seen = f"{self.other} takes {number(min(ratios))}–{number(max(ratios))} times"
        return Judgement(_verdict(share), f"{seen} what {self.one} takes")


@dataclass(frozen=True)
class Steadier:
    """*one* varies less over the panel than each of *others*."""

    panel: str
    one: str
    others: tuple[str, ...]

    @property
    def text(self) -> str:
        return (
            f"the largest of {self.one} over its smallest is less than that of "
            f"{', '.join(self.others)}: than of all (agrees), of half (partly)"
        )

    def judge(self, panels: Panels) -> Judgement:
        spans = {}
        for name in (self.one, *self.others):
            medians = [point.value for point in panels[self.panel].curve(name).points]
            spans[name] = _ratio(max(medians), min(medians))
        share = _won([spans[name] / spans[self.one] for name in self.others]) / len(self.others)
        seen = ", ".join(f"{name} {number(span)}×" for name, span in spans.items())
        return Judgement(_verdict(share), f"largest over smallest: {seen}")


@dataclass(frozen=True)
class BestAt:
    """*curve* has its smallest value at *x*, and both ends are worse."""

    panel: str
    curve: str
    x: float

    @property
    def text(self) -> str:
        return (
            f"{self.curve} takes least at {self.x:g}, and more at each end by {NOISE:g}× (agrees); "
            f"within {NOISE:g}× of the least (partly); else disagrees"
        )

    def judge(self, panels: Panels) -> Judgement:
        points = panels[self.panel].curve(self.curve).points
        nearest = min(points, key=lambda point: abs(float(point.x) - self.x))
        least = min(point.value for point in points)
        others = [one for one in (points[0], points[-1]) if one is not nearest]
        verdict = DISAGREES
        if nearest.value <= NOISE * least:
            worse = all(one.value >= NOISE * nearest.value for one in others)
            verdict = AGREES if worse else PARTLY
        return Judgement(verdict, ", ".join(f"{p.x}: {number(p.value)}" for p in points))


def _won(ratios: Sequence[float]) -> float:
    """How many of *ratios* are above 1; those within NOISE count as half."""
    return sum(1.0 if r >= NOISE else 0.5 if r > 1 / NOISE else 0.0 for r in ratios)


def _verdict(share: float) -> str:
    return AGREES if share > 0.99 else PARTLY if share >= 0.5 else DISAGREES


@dataclass(frozen=True)
class All:
    """Several rules at once: all agree, some do, none does."""

    rules: tuple[Rule, ...]

    @property
    def text(self) -> str:
        return "all of: " + " / ".join(rule.text for rule in self.rules)

    def judge(self, panels: Panels) -> Judgement:
        found = [rule.judge(panels) for rule in self.rules]
        return Judgement(combined([one.verdict for one in found]), "; ".join(f.seen for f in found))


def combined(verdicts: Sequence[str]) -> str:
    """The verdict of several together.

    >>> combined(["agrees", "disagrees"]), combined(["agrees"])
    ('partly', 'agrees')
    """
    kinds = set(verdicts)
    return kinds.pop() if len(kinds) == 1 else PARTLY
