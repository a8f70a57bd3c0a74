"""Events and subscriptions to be matched as two tables, and their matches by definition."""

from dataclasses import replace

import pyarrow as pa
from hypothesis import strategies as st

from stentor.language.evaluate import evaluate
from stentor.wire.table_writers import events_to_table
from tests.support import grid, strategies


def events(min_size, max_size):
    """Pairs of an event with an id of its own, and a time or None."""
    times = st.none() | strategies.instants()
    drawn = st.lists(
        st.tuples(strategies.events(several=False), times), min_size=min_size, max_size=max_size
    )
    return drawn.map(
        lambda found: [(replace(one, id=f"e{n}"), time) for n, (one, time) in enumerate(found)]
    )


def subscriptions(min_size, max_size):
    """Subscriptions with ids of their own, some of them over one day."""
    drawn = st.lists(strategies.subscriptions(until=True), min_size=min_size, max_size=max_size)
    return drawn.map(lambda found: [replace(one, id=f"s{n}") for n, one in enumerate(found)])


def table_of(events):
    """*events* with their times."""
    table = events_to_table([event for event, _ in events], grid.schema()).drop_columns("until")
    times = pa.array([time for _, time in events], pa.timestamp("us", "UTC"))
    return table.append_column("time", times)


def defined(events, subscriptions):
    """The matches: event, subscription, score; sorted."""
    return sorted(
        (event.id, one.id, evaluation.score)
        for event, time in events
        for one in subscriptions
        if time is None or one.until is None or time < one.until
        if (evaluation := evaluate(one.expression, event, here=one.at)).truth
    )


def best(matches, k):
    """The k best of each event among *matches*, equal scores by id; sorted."""
    by_event = {}
    for event, id, score in matches:
        by_event.setdefault(event, []).append((-score, id))
    return sorted(
        (event, id, -score) for event, found in by_event.items() for score, id in sorted(found)[:k]
    )
