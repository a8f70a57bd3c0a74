"""The papers' rivals behind the product's contract: each equals `evaluate`."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from stentor.index import catalog
from stentor_lab.baselines.rivals import RIVALS, rival_names
from tests.index import test_contract as contract
from tests.support.drawn_once import for_each

RIVAL_NAMES = rival_names()
on_every_rival = for_each("name", RIVAL_NAMES)


@pytest.fixture(scope="module", autouse=True)
def _in_the_catalogue():
    """The product's suite names structures; for these tests rivals are among them."""
    known = dict(catalog._STRUCTURES)
    for name, entry in RIVALS.items():
        catalog._STRUCTURES[name] = entry.module, entry.class_name
    yield
    catalog._STRUCTURES.clear()
    catalog._STRUCTURES.update(known)


def plain(test):
    """The body of a test of the contract suite, without its own names and examples."""
    body = test.hypothesis.inner_test
    return body.__wrapped__


few = settings(max_examples=15, phases=(Phase.explicit, Phase.generate))


@few
@given(subscriptions=contract.some_subscriptions, some=contract.arrivals())
@on_every_rival
def test_matches_are_those_of_evaluate(name, subscriptions, some):
    plain(contract.test_matches_are_those_of_evaluate)(name, subscriptions, some)


@few
@given(
    subscriptions=contract.some_subscriptions,
    size=contract.sizes,
    some=contract.arrivals(),
    data=st.data(),
)
@on_every_rival
def test_many_rows_are_matched_like_few(name, subscriptions, size, some, data):
    plain(contract.test_many_rows_are_matched_like_few)(name, subscriptions, size, some, data)


@few
@given(
    subscriptions=contract.some_subscriptions,
    later=contract.some_subscriptions,
    some=contract.arrivals(),
    data=st.data(),
)
@on_every_rival
def test_rows_come_and_go(name, subscriptions, later, some, data):
    plain(contract.test_rows_come_and_go)(name, subscriptions, later, some, data)


@few
@given(subscriptions=contract.some_subscriptions, some=contract.arrivals(), data=st.data())
@on_every_rival
def test_a_row_that_moves_takes_its_circles_along(name, subscriptions, some, data):
    body = contract.test_a_row_that_moves_keeps_its_number_and_takes_its_circles_along
    plain(body)(name, subscriptions, some, data)


@few
@given(
    subscriptions=contract.some_subscriptions,
    live=contract.arrivals(),
    more=contract.arrivals(),
    data=st.data(),
)
@on_every_rival
def test_live_events_are_matched_backwards(name, subscriptions, live, more, data):
    plain(contract.test_live_events_are_matched_backwards)(name, subscriptions, live, more, data)


@pytest.mark.parametrize("name", RIVAL_NAMES)
def test_nothing_everything_and_counts(name):
    contract.test_an_index_of_nothing_answers_with_nothing(name)
    contract.test_true_wants_every_event_and_false_none(name)
    contract.test_an_opened_structure_is_read_only_and_says_what_to_do(name)
    contract.test_stats_count_what_stands(name)
