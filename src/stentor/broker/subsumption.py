"""What a link is announced by subscription indexing: exact covering, subsumption and merging.

    new interest ─▶ covered, or subsumed by several together ─▶ nothing is announced
                 ─▶ one with what is announced               ─▶ that is wider from now on
                 ─▶ neither                                  ─▶ announced; what it covers goes

The neighbour matches what it was announced, in all dimensions, so nothing travels that nobody
wants. An interest that is not announced has supporters: announced names that together hold all of
it. Interests that are merged are announced under the name of one of them; they are its members.

Paper: MICS, section 5 (covering/indexed.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from stentor._jit import announce_compilation
from stentor.broker.interest import Interest, InterestTable
from stentor.broker.policies import Announcements, TwoPartPolicy, as_ranges
from stentor.covering.implies.decode import alternatives_of_row
from stentor.covering.implies.predicates import LocationSet, NumberSet
from stentor.covering.indexed import MOST_STEPS, Merger, SubsumptionIndex
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.ragged import take
from stentor.model import Box, Constant, Kind, Schema, Subscription
from stentor.model.expression import (
    And,
    Comparison,
    Expression,
    IsNull,
    Not,
    Or,
    Predicate,
    Truth,
    Weighted,
    Within,
)


class SubsumptionPolicy(TwoPartPolicy):
    """What others hold together is not announced; what can be one subscription is announced as one.

    After *steps* of subtraction an interest counts as not subsumed.
    """

    def __init__(self, schema: Schema, steps: int = MOST_STEPS) -> None:
        super().__init__()
        announce_compilation("stentor.covering")
        self._schema = schema
        self._index = SubsumptionIndex(schema, most_steps=steps)  # of what is announced
        self._exact: dict[str, Interest] = {}  # what is announced, by name
        self._members: dict[str, set[str]] = {}  # by announced name: what that is the union of
        self._supporters: dict[str, list[str]] = {}  # of each name that is not announced
        self._supported: dict[str, set[str]] = {}  # by announced name
        self._touched: dict[str, Interest | None] = {}  # what was announced before this call

    def _announce_exact(self, interests: InterestTable) -> Announcements:
        names, columns = list(interests.exact), interests.columns
        narrowed: set[str] = set()
        for name in filter(self._is_exact, names):
            narrowed |= {name, *self._remove(name)}
        # Most of many are held by what is announced already: one look-up for all of them.
        alone = []
        for position, related in enumerate(self._index.relate(columns)):
            if related.subsumed_by:
                self._support(names[position], related.subsumed_by)
            else:
                alone.append(position)
        for position in alone:
            self._insert(names[position], take(columns, np.array([position])))
        first, then = self._changes(narrowed)
        return first + then

    def _withdraw_exact(self, name: str) -> tuple[Announcements, Announcements]:
        return self._changes(self._remove(name))

    def _is_exact(self, name: str) -> bool:
        return name in self._exact or name in self._supporters

    def _changes(self, narrowed: set[str]) -> tuple[Announcements, Announcements]:
        """What is announced that is new or wider, and then what may be narrower, or gone.

        Invariant: at most one name that is *narrowed* was announced before and is now, so that
        between two messages nothing is missing.
        """
        touched, self._touched = self._touched, {}
        first: Announcements = []
        then: Announcements = []
        for name, before in touched.items():
            now = self._exact.get(name)
            if now is not None:
                (then if before is not None and name in narrowed else first).append((name, now))
        return first, then + [(name, None) for name in touched if name not in self._exact]

    # One interest comes, or goes.

    def _insert(self, name: str, columns: SubscriptionColumns) -> None:
        """Let the interest *name*, which is of these *columns*, be announced or supported."""
        interest = self.interests[name]
        assert isinstance(interest, Interest), "no ranges come here"
        related = self._index.relate(columns)[0]
        if related.subsumed_by:
            self._support(name, related.subsumed_by)
            return
        covered, merged = set(related.covers), list[str]()
        while found := self._merge(interest, related.mergers, covered.union(merged)):
            interest, merger = found
            columns = merger.columns
            merged.append(merger.id)
            related = self._index.relate(columns)[0]
            covered |= {one for one in related.covers if one not in merged}
        target = merged[0] if merged else name
        members = {name}.union(*(self._members[one] for one in merged))
        for one in [*sorted(covered), *merged]:
            if one != target:
                self._hand_over(one, target)
        self._touch(target)
        self._exact[target] = interest.renamed(target)
        self._index.subscribe(target, columns)
        self._members[target] = members
        for member in members - {target}:
            self._support(member, [target])

    def _merge(
        self, interest: Interest, mergers: Iterable[Merger], gone: set[str]
    ) -> tuple[Interest, Merger] | None:
        """*interest* and the first of *mergers* that is not *gone* as one; None: there is none."""
        subscription = interest.subscription
        for merger in mergers:
            if merger.id in gone:
                continue
            wide = _merged_expression(subscription.expression, merger, self._schema)
            if wide is not None:
                one = Subscription(interest.name, wide, subscription.at)
                return Interest(interest.name, one), merger
        return None

    def _hand_over(self, name: str, target: str) -> None:
        """Announce *name* no longer: *target*, soon announced, holds all of it."""
        self._forget(name)
        for one in self._supported.pop(name, set()):
            others = [other for other in self._supporters[one] if other not in (name, target)]
            self._support(one, [*others, target])
        del self._members[name]
        self._support(name, [target])

    def _remove(self, name: str) -> set[str]:
        """Let the interest *name* go; the announced name that may be narrower then, if any."""
        announced = name
        if name in self._supporters:
            announced = self._supporters[name][0]
            self._unsupport(name)
            if name not in self._members[announced]:
                return set()
        self._forget(announced)
        orphans = self._members.pop(announced) | self._supported.pop(announced, set())
        orphans.discard(name)
        for orphan in orphans:
            self._unsupport(orphan)
        for orphan in sorted(orphans):
            interest = self.interests[orphan]
            self._insert(orphan, InterestTable([interest], self._schema, None).columns)
        return {announced}

    def _forget(self, name: str) -> None:
        self._touch(name)
        del self._exact[name]
        self._index.unsubscribe(name)

    def _touch(self, name: str) -> None:
        self._touched.setdefault(name, self._exact.get(name))

    def _support(self, name: str, supporters: list[str]) -> None:
        """Let *name* not be announced: *supporters* are, and hold all of it."""
        self._supporters[name] = supporters
        for one in supporters:
            self._supported.setdefault(one, set()).add(name)

    def _unsupport(self, name: str) -> None:
        for one in self._supporters.pop(name, ()):
            self._supported.get(one, set()).discard(name)

    def check(self) -> None:
        self._index.check()
        self._ranges.check()
        exact = {*self._exact, *self._supporters}
        assert {*exact, *self._ranges} == set(self.interests)
        assert len(exact) + len(self._ranges) == len(self.interests)
        assert len(self._exact) + len(self._supporters) == len(exact)
        assert set(self._index) == set(self._exact) == set(self._members)
        assert self.announced == self._exact | dict(as_ranges([*self._ranges.announced.items()]))
        for name, supporters in self._supporters.items():
            assert supporters, name
            assert all(name in self._supported[one] for one in supporters)
        for announced, names in self._supported.items():
            assert all(announced in self._supporters[name] for name in names)
        for announced, members in self._members.items():
            for one in members:
                assert one == announced or self._supporters[one] == [announced]
                table = InterestTable([self.interests[one]], self._schema, None)
                [related] = self._index.relate(table.columns)
                assert announced in related.covered_by


def _merged_expression(expression: Expression, merger: Merger, schema: Schema) -> Expression | None:
    """*expression* with what *merger* wants of its attribute; None where it cannot be written."""
    parts = expression.children if isinstance(expression, And) else (expression,)
    attributes = [_attribute(part) for part in parts]
    if None in attributes:
        return None
    tests = _tests(merger, schema)
    others = zip(parts, attributes, strict=True)
    kept = [part for part, attribute in others if attribute != merger.attribute]
    both = (*kept, *tests)
    return (And(both) if len(both) > 1 else both[0]) if tests else None


def _attribute(part: Expression) -> str | None:
    """The attribute of a predicate or of its negation; None: it is neither."""
    if isinstance(part, Not):
        part = part.child
    if isinstance(part, Weighted):
        part = part.predicate
    return None if isinstance(part, And | Or | Not | Truth) else part.attribute


def _tests(merger: Merger, schema: Schema) -> list[Expression]:
    """What *merger* wants of its attribute; nothing where the language has no words for it."""
    attribute, kind = merger.attribute, schema.kind(merger.attribute)
    wanted = alternatives_of_row(merger.columns, 0, schema.by_code, schema)[0][attribute]
    match wanted:
        case LocationSet((Box() as box,), ()):
            return [Within(attribute, box)]
        case NumberSet() if kind is Kind.BOOLEAN:  # only TRUE and FALSE together are one
            return [Not(IsNull(attribute))]
        case NumberSet(((low, high),)) if kind is not None:
            if (low, high) == (-math.inf, math.inf):
                return [Not(IsNull(attribute))]
            ends = [_end(attribute, kind, low, -math.inf), _end(attribute, kind, high, math.inf)]
            written = [one for one in ends if one is not None]
            is_complete = len(written) == (low > -math.inf) + (high < math.inf)
            return [*written] if is_complete else []
    return []


def _end(attribute: str, kind: Kind, end: float, outward: float) -> Predicate | None:
    """One *end* of an interval as a comparison; None where there is none, or no word for it.

    Only whole microseconds can be written: an open end of timestamps is beside one.
    """
    if end == outward:
        return None
    if kind is Kind.NUMBER or end.is_integer():
        return Comparison(attribute, ">=" if outward < 0 else "<=", Constant(kind, end))
    beside = math.nextafter(end, outward)
    if not beside.is_integer():
        return None
    return Comparison(attribute, ">" if outward < 0 else "<", Constant(kind, beside))
