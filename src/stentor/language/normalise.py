"""Text's tree → alternatives of predicates: multiplied out, simplified, never changing a score.

tree ─negation─▶ literals under All/Some ─expand─▶ alternatives ─simplify─▶ NormalForm

Alternatives that another one absorbs are left out: wherever they hold it holds, scoring no less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from stentor.errors import LimitError
from stentor.language.evaluate import Alternative, alternatives
from stentor.language.limits import ANY_SIZE, DEFAULT_LIMITS, Limits
from stentor.language.negation import All, Literal, Positive, to_negation_normal_form
from stentor.language.normal_predicates import (
    Intervals,
    IsMissing,
    IsPresent,
    Membership,
    NormalPredicate,
    Test,
)
from stentor.language.predicates import check_limit, size_of
from stentor.language.predicates import check_size as check_predicate
from stentor.language.predicates.comparison import intersection
from stentor.language.predicates.pattern import steps_of
from stentor.language.regular import TableBudget, compiled
from stentor.language.simplify import Known, simplify
from stentor.language.syntax_errors import field_asked_for
from stentor.language.tree import check_weight, leaves_of, tree_depth
from stentor.model import Expression, Like, Predicate, Regular, Weighted
from stentor.model.record import RECORD_FIELDS

#: Comparing all pairs is quadratic; larger forms keep their absorbed alternatives.
MOST_COMPARED = 100_000  # pairs of alternatives times their predicates

Conjunction = tuple[NormalPredicate, ...]
Grouped = dict[str, list[NormalPredicate]]  # by attribute


@dataclass(frozen=True, slots=True)
class NormalForm:
    """Alternatives, each a conjunction of predicates in the order of the attributes' names."""

    alternatives: tuple[Conjunction, ...]

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


def normalise(
    expression: Expression, limits: Limits = DEFAULT_LIMITS, *, is_checked: bool = False
) -> NormalForm:
    """The normal form of *expression*; a LimitError where it would grow too large.

    *is_checked* says that it is within *limits* as it stands: `parse` and `check_size` see to it.

    Cost: the number of alternatives times their length, both bounded by *limits* beforehand; a
    look-up for a small tree that came lately.
    """
    recent = _recent.get(id(expression))
    if recent is not None and limits in (recent.limits, ANY_SIZE):
        return recent.form
    if not is_checked:
        check_size(expression, limits)
    positive = to_negation_normal_form(expression)
    size = _check_expansion(positive, limits)
    known: Known = {}
    simplified = [simplify(alternative, known) for alternative in _alternatives(positive)]
    possible = tuple(predicates for predicates in simplified if predicates is not None)
    if len(possible) > 1:
        possible = without_absorbed(tuple(dict.fromkeys(possible)))
    form = NormalForm(possible)
    if size <= SMALL:
        _remember(_Recent(expression, limits, form))
    return form


def _alternatives(positive: Positive) -> Iterable[Alternative]:
    """`alternatives`, at once where predicates on attributes of their own are joined by AND."""
    literals = _literals(positive)
    if len({literal.predicate.attribute for literal in literals}) == len(literals) > 0:
        return (literals,)
    return alternatives(positive)


def _literals(positive: Positive) -> Alternative:
    """The children of a plain conjunction; none where it is anything else."""
    if not isinstance(positive, All):
        return ()
    literals = tuple(child for child in positive.children if isinstance(child, Literal))
    return literals if len(literals) == len(positive.children) else ()


def _remember(recent: _Recent) -> None:
    if len(_recent) >= MOST_RECENT:
        _recent.clear()
    _recent[id(recent.expression)] = recent


def check_size(expression: Expression, limits: Limits) -> None:
    """Refuse a tree (from a builder, say) that *limits* or the rules of the language forbid."""
    check_limit("levels of nesting", tree_depth(expression), limits.depth)
    if limits.are_of_our_own:
        return
    leaves = list(leaves_of(expression))
    tables = TableBudget(limits.pattern_work)
    check_limit("predicates", len(leaves), limits.predicates)
    for leaf in leaves:
        predicate: Predicate = leaf.predicate if isinstance(leaf, Weighted) else leaf
        if isinstance(leaf, Weighted):
            check_weight(leaf.weight)
        if predicate.attribute in RECORD_FIELDS:
            raise field_asked_for(predicate.attribute)
        check_predicate(predicate, limits, tables)


def _check_expansion(positive: Positive, limits: Limits) -> int:
    """Refuse what would multiply out too far, before anything is multiplied; how far it would."""
    count, size = _expanded_size(positive, _size)
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
    literals = _literals(positive)
    if literals and not any(isinstance(one.predicate, Like | Regular) for one in literals):
        return size
    _, steps = _expanded_size(positive, _steps)
    if steps > limits.pattern_steps:
        raise LimitError(
            f"the expression's LIKEs take {_rounded(steps)} steps for each character of a text; "
            f"the limit is {limits.pattern_steps:,}",
            hint="shorten what stands between two % together with _, or split the subscription",
        )
    _, stored = _expanded_size(positive, _table_bytes)
    if stored > limits.pattern_bytes:
        raise LimitError(
            f"the tables of the expression's ILIKEs and RLIKEs have {_rounded(stored)} bytes in "
            f"all its alternatives; the limit is {limits.pattern_bytes:,}",
            hint="split it into several subscriptions, or use IN instead of OR",
        )
    return size


def _rounded(count: int) -> str:
    return f"{count:,}" if count < 10**9 else "more than a billion"


def _expanded_size(positive: Positive, size_of: Callable[[Predicate], int]) -> tuple[int, int]:
    """How many alternatives *positive* has, and the sizes of all their predicates together."""
    if isinstance(positive, Literal):
        return 1, size_of(positive.predicate)
    sizes = [_expanded_size(child, size_of) for child in positive.children]
    if not isinstance(positive, All):
        return sum(count for count, _ in sizes), sum(size for _, size in sizes)
    count, size = 1, 0
    for child_count, child_size in sizes:
        count, size = count * child_count, size * child_count + child_size * count
    return count, size


def _steps(predicate: Predicate) -> int:
    return steps_of(predicate.pattern) if isinstance(predicate, Like) else 0


def _table_bytes(predicate: Predicate) -> int:
    if not isinstance(predicate, Regular):
        return 0
    return len(compiled(predicate.syntax, predicate.pattern).table)


def _size(predicate: Predicate) -> int:
    """What a predicate weighs: one, or what its list, words or polygon hold by the hundred."""
    return 1 + size_of(predicate) // 100


def without_absorbed(conjunctions: tuple[Conjunction, ...]) -> tuple[Conjunction, ...]:
    """*conjunctions* less those that can neither match nor score more than another of them."""
    if len(conjunctions) * sum(map(len, conjunctions)) > MOST_COMPARED:
        return conjunctions
    kept = {position: _by_attribute(one) for position, one in enumerate(conjunctions)}
    for position, narrow in list(kept.items()):
        if any(absorbs(wide, narrow) for other, wide in kept.items() if other != position):
            del kept[position]
    return tuple(conjunctions[position] for position in kept)


def _by_attribute(predicates: tuple[NormalPredicate, ...]) -> Grouped:
    groups: Grouped = {}
    for predicate in predicates:
        groups.setdefault(predicate.attribute, []).append(predicate)
    return groups


def absorbs(wide: Grouped, narrow: Grouped) -> bool:
    """Whether *wide* holds wherever *narrow* does and never scores less."""
    for attribute, (first, *_) in narrow.items():
        if first.weight > (wide[attribute][0].weight if attribute in wide else 0.0):
            return False
    return all(
        any(implies(predicate.test, wanted.test) for predicate in narrow.get(attribute, ()))
        for attribute, group in wide.items()
        for wanted in group
    )


def implies(left: Test, right: Test) -> bool:
    """Whether *left* is known to imply *right*; sound, and False where it is not obvious."""
    if left == right:
        return True
    match left, right:
        case IsMissing(), _:
            return False
        case _, IsPresent():
            return True
        case Intervals(inner), Intervals(outer):
            return intersection(inner, outer) == inner
        case Membership(few, False), Membership(many, False):
            return set(few) <= set(many)
        case Membership(few, False), Membership(excluded, True):
            return not set(few) & set(excluded)
        case _:
            return False
