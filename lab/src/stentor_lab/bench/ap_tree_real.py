"""The AP-Tree on real data, where the environment variable STENTOR_DATA names its folder.

Paper: AP-Tree, section 5.1.1: GN, CARS and AIS; section 5.2.1: the roads of Oldenburg, and
California's in place of San Joaquin's, whose crossings have no places.
"""

from __future__ import annotations

from typing import Final

from stentor_lab.bench.ap_tree_matching import EVENTS, MOST_FOR_VARIANTS, PAPER, SIZE, TUNED, built
from stentor_lab.bench.ap_tree_moving import tables_of
from stentor_lab.result import BenchOptions, Table
from stentor_lab.structures import Workload, matching_table
from stentor_lab.workloads.moving_keyword import CITY, MovingKeyword
from stentor_lab.workloads.real_files import is_there, roads_of
from stentor_lab.workloads.real_messages import DATA_SETS, RealMessages
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

ROADS: Final = {"Oldenburg": "road_oldenburg.txt", "California": "road_california.txt"}


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """A table for each data set, and those of travellers on real roads; none without data."""
    if not is_there():
        options.progress("no real data: STENTOR_DATA names no folder")
        return ()
    found = []
    for name, messages_of in DATA_SETS.items():
        options.progress(f"real data: reading {name}")
        found.append(_matching(name, messages_of(options.seed), options))
    words = SpatialKeyword(options.seed, space=CITY)
    for name, file in ROADS.items():
        recipe = MovingKeyword(words, roads=roads_of(file, CITY))
        found += tables_of(recipe, f"the roads of {name}", options)
    return tuple(found)


def _matching(name: str, messages: RealMessages, options: BenchOptions) -> Table:
    size = min(options.size or SIZE, MOST_FOR_VARIANTS)
    history = messages.history_count
    facts = {
        "data": messages.files,
        "messages": len(messages),
        "words": len(messages.vocabulary),
        "words/message": f"{len(messages.word) / len(messages):.1f}",
        "history": history,
    }
    workload = Workload(
        f"Real data: {name}",
        facts,
        messages.subscriptions(size, seed=options.seed),
        messages.columns(history, min(history + EVENTS, len(messages))),
        messages.columns(0, history),
    )
    return matching_table(workload, built((TUNED, PAPER), workload, options), options)
