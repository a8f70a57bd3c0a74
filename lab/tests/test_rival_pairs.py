"""What a rival proposes it proposes once: a pair that comes twice is extra work."""

from functools import lru_cache

import numpy as np
import pytest

from stentor.encoding.ragged import events_between, take
from stentor_lab.baselines.rivals import any_structure, rival_names
from stentor_lab.workloads.expressions import Expressions
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

RECIPES = {
    "expressions": lambda: (Expressions(1, alpha=1.0, match_share=0.01), 4000),
    "intervals": lambda: (Intervals(1, 6, 1.0), 400),
    "keywords": lambda: (SpatialKeyword(1), 4000),
}
#: Those with a filter for subscriptions: SCAN has none, the BEQ-Tree is for live events.
FILTERS = [name for name in rival_names() if hasattr(any_structure(name), "_find")]


@lru_cache(maxsize=3)
def workload(recipe):
    made, count = RECIPES[recipe]()
    return made.subscriptions(count).columns(), made.events(32).columns()


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_rival_proposes_each_pair_once(name, recipe):
    columns, events = workload(recipe)
    index = any_structure(name).build(columns, events_between(events, 0, 16))
    assert_distinct(index, events)


@pytest.mark.parametrize("name", FILTERS)
def test_a_rival_that_grew_in_batches_proposes_each_pair_once(name):
    columns, events = workload("expressions")
    index = any_structure(name)()
    for start in range(0, 1000, 200):
        index.insert(take(columns, np.arange(start, start + 200)))
    index.remove(np.arange(0, 1000, 3))
    index.insert(take(columns, np.arange(0, 200)))
    assert_distinct(index, events)


def assert_distinct(index, events):
    nothing = np.zeros(0, np.int64)
    found = index._find(events, nothing, nothing)
    event, alternative = np.empty(found, np.int64), np.empty(found, np.int64)
    assert index._find(events, event, alternative) == found
    pairs = np.unique(np.stack((event, alternative)), axis=1)
    assert pairs.shape[1] == found
