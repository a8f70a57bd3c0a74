"""Subscriptions on the same few attributes: many of them cover one another."""

import math
from functools import cache
from itertools import combinations

from hypothesis import strategies as st

from stentor.encoding.subscriptions import NormalisedSubscription
from stentor.language.normalise import normalise
from stentor.language.terms import fold_terms
from stentor.language.tree import all_of, any_of, predicates_of
from stentor.model import Constant, Event, Has, IsNull, Kind, Not, Subscription, Truth
from stentor.model.values.members import set_of
from tests.support import grid
from tests.support.strategies import points, predicates, subscriptions


def normalised(subscription):
    """*subscription* as it is encoded."""
    return NormalisedSubscription(normalise(subscription.expression), subscription.at)


@cache
def _on(names):
    plain = predicates(names)
    literal = plain | plain | plain.map(Not)
    conjunction = st.lists(literal, min_size=1, max_size=3).map(all_of)
    several = st.lists(conjunction, min_size=2, max_size=2).map(any_of)
    wanted = st.one_of(conjunction, conjunction, conjunction, several, st.just(Truth(True)))
    return st.builds(Subscription, st.just("s"), wanted, points())


def related(min_size=1, max_size=12):
    """Lists of subscriptions, mostly conjunctions on one or two attributes that all share."""
    names = st.lists(st.sampled_from(list(grid.KINDS)), min_size=1, max_size=2).map(
        lambda found: tuple(sorted(set(found)))
    )
    anything = subscriptions(id="s", max_predicates=4)
    return names.flatmap(
        lambda chosen: st.lists(
            st.one_of(*[_on(chosen)] * 7, anything), min_size=min_size, max_size=max_size
        )
    )


def conjunctions(names, count):
    """Lists of *count* conjunctions on *names*, of numbers, booleans or words alone."""
    literal = predicates(names).filter(
        lambda one: isinstance(one, (Has, IsNull)) or "text" not in names
    )
    signed = literal | literal.map(Not)
    wanted = st.lists(signed, min_size=1, max_size=3).map(all_of)
    return st.lists(st.builds(Subscription, st.just("s"), wanted), min_size=count, max_size=count)


def telling_events(*several):
    """Events enough to tell conjunctions on one number, boolean or text apart if any event does."""
    yield Event("e", {}, {})
    name = next(
        predicate.attribute for one in several for predicate in predicates_of(one.expression)
    )
    if name == "text":
        terms = sorted({term for word in grid.WORDS for term in fold_terms(word)})
        for size in range(len(terms) + 1):
            for chosen in combinations(terms, size):
                yield Event("e", {"text": Constant(Kind.STRING, " ".join(chosen))}, {})
        return
    kind = grid.KINDS[name]
    if kind is Kind.SET:
        members = [
            Constant(Kind.STRING if isinstance(one, str) else Kind.NUMBER, one)
            for one in grid.MEMBERS
        ]
        for size in range(len(members) + 1):
            for chosen in combinations(members, size):
                yield Event("e", {name: set_of(chosen)}, {})
        return
    values = {0.0, 1.0} if kind is Kind.BOOLEAN else {-math.inf, math.inf}
    if kind is Kind.NUMBER:
        for value in grid.NUMBERS:
            values |= {value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)}
    for value in values:
        yield Event("e", {name: Constant(kind, value)}, {})
