"""Brokers: a tree of them delivers what one engine delivers."""

import random
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.testing import grid, strategies
from tests.overlay_runs import Compared, renamed

POLICIES = ("none", "covering", "covering k=3", "poset")


@st.composite
def trees(draw, max_brokers=6):
    """Links of a random tree."""
    count = draw(st.integers(2, max_brokers))
    return [(f"b{draw(st.integers(0, one - 1))}", f"b{one}") for one in range(1, count)]


faults = st.one_of(
    st.tuples(st.just("cut"), st.integers(0, 9)),
    st.tuples(st.just("heal"), st.integers(0, 9)),
    st.tuples(st.just("restart"), st.integers(0, 9)),
)


@given(
    trees(),
    strategies.histories(max_size=24),
    st.lists(st.integers(0, 9), min_size=24, max_size=24),
    st.dictionaries(st.integers(0, 23), faults, max_size=8),
    st.lists(st.sampled_from(POLICIES), min_size=6, max_size=6),
    st.integers(0, 2**16),
)
def test_a_tree_of_brokers_delivers_what_one_engine_delivers(
    links, history, places, faulty, policies, seed
):
    brokers = list(dict.fromkeys(name for link in links for name in link))
    policy = dict(zip(brokers, policies, strict=False))
    choose = random.Random(seed).randrange
    run = Compared(links, schema=grid.schema(), policy=policy, choose=choose)
    for number, record in enumerate(history):
        if number in faulty:
            what, which = faulty[number]
            if what == "restart":
                run.restart(brokers[which % len(brokers)])
            else:
                getattr(run, what)(which)
        run.feed(brokers[places[number] % len(brokers)], renamed(record, number))
        run.check()
    run.heal_all()
    run.check()
