"""The AP-Tree's data sets: tweets, which are always drawn, and three that are real where they are.

Without a folder of real data, messages of the same form are drawn: as many words to choose from and
in each message as Table 2 says, in a space with hotspots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, SubscriptionColumns
from stentor.encoding.kinds import KEYWORDS
from stentor.encoding.ragged import take
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.structures import Workload
from stentor_lab.workloads import real_files
from stentor_lab.workloads.distributions import Hotspots, distinct_zipf_ranks, random_of
from stentor_lab.workloads.real_messages import DATA_SETS, FILES, RealMessages
from stentor_lab.workloads.spatial_keyword import SPACE, SpatialKeyword

TWEETS, GN, CARS, AIS = "TWEETS", "GN", "CARS", "AIS"
NAMES: Final = (TWEETS, GN, CARS, AIS)
_REAL: Final = {GN: "names", CARS: "cabs", AIS: "ships"}
#: Table 2: words to choose from, and in a message.
_WORDS: Final = {GN: (208_000, 7), CARS: (81_000, 30), AIS: (81_000, 50)}
SMALLEST, LARGEST = 0.0001, 0.01
_DRAWN = 210  # a stream of random numbers


@dataclass(frozen=True)
class KeywordData:
    """One data set: where subscriptions, history and messages come from."""

    name: str
    about: str
    recipe: SpatialKeyword | None
    messages: RealMessages | None
    seed: int
    event_count: int

    def subscriptions(
        self,
        count: int,
        *,
        keywords: int | None = None,
        smallest: float = SMALLEST,
        largest: float = LARGEST,
    ) -> SubscriptionColumns:
        """*count* of them; with *keywords* each has exactly so many."""
        drawn = count if keywords is None else 6 * count + 100
        if self.messages is not None:
            sides = {"smallest": smallest, "largest": largest}
            columns = self.messages.subscriptions(drawn, seed=self.seed, **sides)
        else:
            recipe = SpatialKeyword(self.seed, smallest=smallest, largest=largest)
            columns = recipe.subscriptions(drawn).columns()
        if keywords is None:
            return columns
        asked = np.flatnonzero(columns.kind == KEYWORDS)  # one for each subscription
        has = columns.operand_stop[asked] - columns.operand_start[asked]
        return take(columns, np.flatnonzero(has == keywords)[:count])

    def events(self) -> EventColumns:
        """Messages that nobody has seen."""
        if self.messages is None:
            assert self.recipe is not None, "it is drawn"
            return self.recipe.events(self.event_count).columns()
        start = self.messages.history_count
        return self.messages.columns(start, min(start + self.event_count, len(self.messages)))

    def history(self) -> EventColumns:
        """Messages that came before."""
        if self.messages is None:
            assert self.recipe is not None, "it is drawn"
            return self.recipe.events(2 * self.event_count, part=1).columns()
        return self.messages.columns(0, min(self.messages.history_count, 20_000))

    def workload(self, count: int, **given: Any) -> Workload:
        """*count* subscriptions with all that is matched."""
        columns = self.subscriptions(count, **given)
        facts = {"data": self.about, "subscriptions": len(columns.until), "seed": self.seed}
        return Workload(self.name, {**facts, **given}, columns, self.events(), self.history())


def keyword_data(name: str, settings: RunSettings) -> KeywordData:
    """The data set *name*."""
    seed, events = settings.seed, settings.scale.events
    if name == TWEETS:
        return KeywordData(name, "drawn tweets", SpatialKeyword(seed), None, seed, events)
    if real_files.has(*FILES[_REAL[name]]):
        messages = _real(name, seed, real_files.contents())
        return KeywordData(name, messages.files, None, messages, seed, events)
    count = max(4 * events, min(settings.scale.base, 100_000))
    drawn = _drawn(name, count, seed)
    return KeywordData(name, f"drawn like {name}", None, drawn, seed, events)


@lru_cache(maxsize=4)
def _real(name: str, seed: int, _contents: str) -> RealMessages:
    return DATA_SETS[_REAL[name]](seed)


@lru_cache(maxsize=4)
def _drawn(name: str, count: int, seed: int) -> RealMessages:
    vocabulary, each = _WORDS[name]
    random = random_of(seed, _DRAWN, each)
    ranks = distinct_zipf_ranks(random, count, each, vocabulary, 1.0, 30)
    used, word = np.unique(ranks, return_inverse=True)
    words = pa.array([f"w{number}x" for number in used.tolist()])
    hotspots = Hotspots.scattered(random_of(seed, _DRAWN, each, 1), SPACE, 200, spread=0.02)
    x, y = hotspots.places(random, count)
    start = np.arange(count + 1) * each
    chosen = np.sort(word.reshape(count, each), axis=1).reshape(-1).astype(np.int32)
    return RealMessages(words, start, chosen, x, y, SPACE, f"drawn like {name}")
