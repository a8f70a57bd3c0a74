"""From text's tree to columns to the scan's answer: what `evaluate` says, to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.check import check
from stentor.encoding.columns import MatchPairs
from stentor.encoding.events import TimedEvent, encode_events
from stentor.index.scan import Scan
from stentor.index.verify import reasons_of, scores_of
from stentor.index.verify.reasons import (
    ATTRIBUTE_MISSING,
    ATTRIBUTE_PRESENT,
    MATCHES,
    NEVER_MATCHES,
    NO_PREDICATE,
)
from stentor.language.evaluate import evaluate
from stentor.language.normalise import normalise
from stentor.model import Schema
from stentor.model.schema import AttributeUse
from stentor.wire.events import event_from_dict, event_to_dict
from tests.support import grid, strategies
from tests.support.slow_index import SlowIndex, encoded, rows_by_event, scores_by_event

some_subscriptions = st.lists(strategies.subscriptions(), min_size=1, max_size=6)
some_events = st.lists(strategies.events(), min_size=1, max_size=6)
SCHEMA = grid.schema()


def arrivals_of(events):
    return [TimedEvent(event) for event in events]


def every_pair(events, rows):
    """Each of *events* events with each of *rows* rows."""
    return MatchPairs(np.arange(events + 1) * rows, np.tile(np.arange(rows), events))


@given(some_subscriptions, some_events)
def test_matches_and_scores_are_those_of_evaluate(subscriptions, events):
    columns = encoded(subscriptions, SCHEMA)
    arrivals = arrivals_of(events)
    event_columns = encode_events(arrivals, SCHEMA)
    check(columns)
    check(event_columns)
    scan, slow = Scan.build(columns), SlowIndex(subscriptions)
    assert rows_by_event(scan.match(event_columns)) == slow.match(arrivals)
    everyone = len(subscriptions)
    assert scores_by_event(scan.top(event_columns, everyone)) == slow.top(arrivals, everyone)


@given(some_subscriptions, some_events)
def test_matching_backwards_is_matching(subscriptions, events):
    columns = encoded(subscriptions, SCHEMA)
    scan, slow = Scan(), SlowIndex()
    scan.hold(encode_events(arrivals_of(events), SCHEMA))
    slow.hold(events)
    assert rows_by_event(scan.match_live(columns)) == slow.match_live(subscriptions)


@given(some_subscriptions, some_events)
def test_every_pair_has_a_reason_and_only_matches_have_none(subscriptions, events):
    columns = encoded(subscriptions, SCHEMA)
    scan = Scan.build(columns)
    pairs = every_pair(len(events), len(subscriptions))
    event_columns = encode_events(arrivals_of(events), SCHEMA)
    found = reasons_of(columns, scan.subscriptions.validity, event_columns, pairs)
    scores = scores_of(columns, event_columns, pairs)
    codes = iter(zip(found.code.tolist(), found.predicate.tolist(), scores.tolist(), strict=True))
    names = list(grid.KINDS)
    for event in events:
        for one in subscriptions:
            code, predicate, score = next(codes)
            truth, expected = evaluate(one.expression, event, here=one.at)
            assert (code == MATCHES) == (truth is True)
            assert score == (expected if truth else -np.inf)
            assert (code == NEVER_MATCHES) == normalise(one.expression).never
            if predicate == NO_PREDICATE:
                assert code in (MATCHES, NEVER_MATCHES)
            else:
                blamed = names[columns.attribute[predicate]]
                assert (code == ATTRIBUTE_MISSING) <= (blamed not in event.attributes)
                assert (code == ATTRIBUTE_PRESENT) <= (blamed in event.attributes)


@given(some_subscriptions, some_events)
def test_the_order_in_which_a_schema_learned_its_names_changes_nothing(subscriptions, events):
    learned = Schema()
    learned.learn(AttributeUse(name, kind, "a test") for name, kind in reversed(grid.KINDS.items()))
    arrivals = arrivals_of(events)
    found = [
        scores_by_event(
            Scan.build(encoded(subscriptions, schema)).top(encode_events(arrivals, schema), 9)
        )
        for schema in (SCHEMA, learned)
    ]
    assert found[0] == found[1]


@given(some_subscriptions, strategies.events())
def test_an_event_that_was_written_and_read_is_wanted_by_the_same(subscriptions, event):
    again = event_from_dict(event_to_dict(event), grid.schema())
    scan = Scan.build(encoded(subscriptions, SCHEMA))
    found = scan.top(encode_events(arrivals_of([event, again]), SCHEMA), len(subscriptions))
    assert scores_by_event(found)[0] == scores_by_event(found)[1]
