"""Text's tree → alternatives of conditions: multiplied out, simplified, never changing a score.

tree ─push_inward─▶ literals under All/Some ─expand─▶ alternatives ─simplify─▶ NormalForm
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from stentor.errors import LimitError
from stentor.language.absorb import without_absorbed
from stentor.language.conditions import Condition
from stentor.language.evaluate import alternatives
from stentor.language.limits import ANY_SIZE, DEFAULT_LIMITS, Limits, tree_depth
from stentor.language.negation import All, Literal, Positive, push_inward
from stentor.language.simplify import Known, simplify
from stentor.language.uses import predicates_of
from stentor.model import Expression, Has, In, Like, Polygon, Predicate, Within

Conditions = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """Alternatives, each a conjunction of conditions in the order of the attributes' names."""

    alternatives: tuple[Conditions, ...]

    @property
    def never(self) -> bool:
        """Whether no event at all can match."""
        return not self.alternatives


class _Recent(NamedTuple):
    """A tree, the limits that it was within, and its form."""

    expression: Expression
    limits: Limits
    form: NormalForm


#: Small trees are remembered: the same one goes to an engine and to policies, broker by broker.
MOST_RECENT: Final = 2048
#: Predicates, and hundreds of values, of a tree that is small.
SMALL: Final = 8
#: By identity; each tree is held here, so that no other gets its id.
_recent: dict[int, _Recent] = {}


def normalise(expression: Expression, limits: Limits = DEFAULT_LIMITS) -> NormalForm:
    """The normal form of *expression*; a LimitError where it would grow too large.

    Cost: the number of alternatives times their length, both bounded by *limits* beforehand; a
    look-up for a small tree that came lately.
    """
    recent = _recent.get(id(expression))
    if recent is not None and limits in (recent.limits, ANY_SIZE):
        return recent.form
    check_size(expression, limits)
    positive = push_inward(expression)
    size = _brake(positive, limits)
    known: Known = {}
    simplified = [simplify(alternative, known) for alternative in alternatives(positive)]
    possible = tuple(conditions for conditions in simplified if conditions is not None)
    if len(possible) > 1:
        possible = without_absorbed(tuple(dict.fromkeys(possible)))
    form = NormalForm(possible)
    if size <= SMALL:
        _remember(_Recent(expression, limits, form))
    return form


def _remember(recent: _Recent) -> None:
    if len(_recent) >= MOST_RECENT:
        _recent.clear()
    _recent[id(recent.expression)] = recent


def check_size(expression: Expression, limits: Limits) -> None:
    """Refuse a tree (from a builder, say) that is deeper or larger than *limits* allow."""
    _check("levels of nesting", tree_depth(expression), limits.depth)
    predicates = list(predicates_of(expression))
    _check("predicates", len(predicates), limits.predicates)
    for predicate in predicates:
        match predicate:
            case In(_, values):
                _check("values in a list", len(values), limits.list_length)
            case Like(_, pattern):
                _check("characters in a pattern", len(pattern), limits.pattern_length)
            case Has(_, words, _):
                _check("words", len(words), limits.words)
            case Within(_, Polygon(rings)):
                _check("points in a polygon", sum(map(len, rings)), limits.polygon_points)


def _check(what: str, found: int, limit: int) -> None:
    if found > limit:
        raise LimitError(f"the expression has {found:,} {what}; the limit is {limit:,}")


def _brake(positive: Positive, limits: Limits) -> int:
    """Refuse what would multiply out too far, before anything is multiplied; how far it would."""
    count, size = _expanded_size(positive)
    if count > limits.alternatives:
        raise LimitError(
            f"the expression multiplies out to {_rounded(count)} alternatives; the limit is "
            f"{limits.alternatives:,}",
            hint="split it into several subscriptions, or use IN and has_any instead of OR",
        )
    if size > limits.expanded_predicates:
        raise LimitError(
            f"the expression multiplies out to {_rounded(size)} predicates and values; "
            f"the limit is {limits.expanded_predicates:,}",
            hint="split it into several subscriptions",
        )
    return size


def _rounded(count: int) -> str:
    return f"{count:,}" if count < 10**9 else "more than a billion"


def _expanded_size(positive: Positive) -> tuple[int, int]:
    """How many alternatives *positive* has, and how many predicates and values together."""
    if isinstance(positive, Literal):
        return 1, _size(positive.predicate)
    sizes = [_expanded_size(child) for child in positive.children]
    if not isinstance(positive, All):
        return sum(count for count, _ in sizes), sum(size for _, size in sizes)
    count, size = 1, 0
    for child_count, child_size in sizes:
        count, size = count * child_count, size * child_count + child_size * count
    return count, size


def _size(predicate: Predicate) -> int:
    """What a predicate weighs: one, or what its list, words or polygon hold by the hundred."""
    match predicate:
        case In(_, values):
            return 1 + len(values) // 100
        case Has(_, words, _):
            return 1 + len(words) // 100
        case Within(_, Polygon(rings)):
            return 1 + sum(map(len, rings)) // 100
        case _:
            return 1
