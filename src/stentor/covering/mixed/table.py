"""Rows of columns, and all that the walk through the trie needs to know of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from stentor.covering.dominance.forest import Limits, new_forest
from stentor.covering.dominance.growing import roomier, with_entries
from stentor.covering.dominance.tree_search import new_search
from stentor.covering.growth import longer
from stentor.covering.meaning.covers import Interest, interest_covers, possible
from stentor.covering.mixed.commands import enter_rows
from stentor.covering.mixed.decode import NOWHERE, ODD, alternative_of, find_odd, interest_of_row
from stentor.covering.mixed.extras import extra_tokens
from stentor.covering.mixed.layout import (
    ASKED_ROW,
    NEED_COORDINATES,
    NEED_NODES,
    NEED_SLOTS,
    NEED_TRIE,
    MixedIndex,
    new_asks,
    new_walk,
)
from stentor.covering.mixed.rows import row_covers
from stentor.covering.mixed.tokens import (
    BOOLEAN,
    IMPOSSIBLE,
    NUMBER,
    POINT,
    STRING,
    UNKNOWN,
    Extras,
    count_choices,
)
from stentor.covering.mixed.trie import new_trie, roomier_trie
from stentor.covering.mixed.verdicts import ASK, NO, YES
from stentor.encoding.columns import (
    KIND_MASK,
    ONE_OF,
    TERMS,
    Int64,
    SubscriptionColumns,
    subscription_count,
)
from stentor.index.growing import GrowingColumns
from stentor.model import Kind, Schema

_CODES: Final = {
    Kind.NUMBER: NUMBER,
    Kind.TIMESTAMP: NUMBER,
    Kind.BOOLEAN: BOOLEAN,
    Kind.STRING: STRING,
    Kind.POINT: POINT,
}


class MixedTable:
    """Rows whose attributes *schema* knows, and the index of those that were entered."""

    def __init__(self, schema: Schema, limits: Limits) -> None:
        self.count = 0
        self.schema = schema
        self._table = GrowingColumns(SubscriptionColumns)
        self._has_words = np.zeros(0, np.uint8)
        self._names: list[str] = []
        self._extras_used = self._most_extras = 0
        forest = new_forest()
        nothing = np.zeros(0, np.int64)
        self.index = MixedIndex(
            columns=self._table.view,
            kinds=np.zeros(0, np.uint8),
            states=np.zeros(0, np.uint8),
            entry_start=np.zeros(1, np.int64),
            row_of=nothing,
            node_of=nothing,
            extras=Extras(nothing, nothing, np.zeros(0, np.uint64)),
            trie=new_trie(),
            forest=forest,
            limits=limits,
            search=new_search(forest),
            walk=new_walk(16),
            asks=new_asks(),
            needs=np.zeros(4, np.int64),
        )
        self._interest = lru_cache(maxsize=4096)(self._interest_of)

    def add(self, columns: SubscriptionColumns) -> Int64:
        """The rows of *columns*, which do not stand yet."""
        first, count = self.count, subscription_count(columns)
        first_alternative = int(self._table.view.alternative_start[-1])
        self._table.append(columns)
        self.count += count
        self._learn()
        held = self._table.view
        alternatives = len(held.predicate_start) - 1
        index = self.index
        rows = np.arange(first, first + count)
        counts = np.empty(alternatives - first_alternative, np.int64)
        count_choices(held, first_alternative, alternatives, counts)
        entry_start = longer(index.entry_start, alternatives + 1)
        first_entry = int(entry_start[first_alternative])
        entry_start[first_alternative + 1 : alternatives + 1] = first_entry + np.cumsum(counts)
        entries = int(entry_start[alternatives])
        row_of = longer(index.row_of, entries)
        of_alternative = np.repeat(rows, np.diff(columns.alternative_start))
        row_of[first_entry:entries] = np.repeat(of_alternative, counts)
        extras = index.extras._replace(
            start=longer(index.extras.start, alternatives),
            stop=longer(index.extras.stop, alternatives),
        )
        self.index = index._replace(
            columns=held,
            states=longer(index.states, alternatives),
            entry_start=entry_start,
            row_of=row_of,
            node_of=longer(index.node_of, entries),
            extras=extras,
            forest=with_entries(index.forest, entries),
        )
        self._make_walk(columns, self._most_extras)
        self._note_words(columns, first_alternative)
        self._settle_odd(first_alternative, alternatives)
        return rows

    def enter(self, rows: Int64) -> None:
        """File *rows* in the index."""
        left = np.ascontiguousarray(rows, np.int64)
        while len(left):
            done = enter_rows(self.index, self.schema.plane, left)
            left = left[done:]
            if len(left):
                self.make_room()

    def start_anew(self, rows: Int64) -> None:
        """Let the index hold *rows* alone, filed in random order: sorted, they make a chain."""
        forest = with_entries(new_forest(), len(self.index.forest.node_of))
        trie = new_trie()
        self.index = self.index._replace(forest=forest, search=new_search(forest), trie=trie)
        self.enter(np.random.default_rng(0).permutation(rows))

    def covers(self, one: int, other: int) -> bool:
        """Whether the row *one* covers the row *other*."""
        index = self.index
        verdict = row_covers(
            index.columns, index.kinds, self.schema.plane, index.states, one, other
        )
        return self._asked(one, other) if verdict == ASK else verdict == YES

    def make_room(self) -> None:
        """Enlarge the pools to what the last row needs."""
        index = self.index
        needs = index.needs.tolist()
        forest = roomier(
            index.forest, needs[NEED_NODES], needs[NEED_COORDINATES], needs[NEED_SLOTS]
        )
        more = needs[NEED_TRIE] - int(index.trie.used[0])
        self.index = index._replace(
            forest=forest, search=new_search(forest), trie=roomier_trie(index.trie, more)
        )

    def answer(self) -> None:
        """Let the definition settle all open questions; make room for more of them."""
        asks = self.index.asks
        row, questions = asks.state.tolist()
        for place, question in enumerate(asks.question[:questions].tolist()):
            if asks.answer[place] == ASK:
                pair = (question, row) if question >= 0 else (row, ~question)
                asks.answer[place] = YES if self._asked(*pair) else NO
        if questions == len(asks.question):
            grown = asks._replace(
                question=longer(asks.question, 2 * questions),
                answer=longer(asks.answer, 2 * questions),
            )
            self.index = self.index._replace(asks=grown)

    def _asked(self, one: int, other: int) -> bool:
        return interest_covers(self._interest(one), self._interest(other))

    def _interest_of(self, row: int) -> Interest:
        return interest_of_row(self.index.columns, row, self._names, self.schema)

    def _learn(self) -> None:
        """Take over what the schema knows by now."""
        if len(self._names) != len(self.schema) or UNKNOWN in self.index.kinds:
            self._names = list(self.schema)
            found = [self.schema.kind(name) for name in self._names]
            codes = [UNKNOWN if kind is None else _CODES[kind] for kind in found]
            self.index = self.index._replace(kinds=np.array(codes, np.uint8))
            self._has_words = longer(self._has_words, len(codes))
            self._interest.cache_clear()
            self.index.asks.state[ASKED_ROW] = -1

    def _make_walk(self, columns: SubscriptionColumns, extras: int = 0) -> None:
        """Room for the tokens of the largest alternative of *columns*, and so many extras."""
        if 3 * len(columns.kind) + 2 * len(columns.string_hash) + extras < len(
            self.index.walk.node
        ):
            return  # all of them together have room: the usual case for a few rows
        lengths = (columns.operand_stop - columns.operand_start).astype(np.int64)
        has_strings = np.isin(columns.kind & KIND_MASK, (ONE_OF, TERMS))
        tokens = np.concatenate(([0], np.cumsum(3 + 2 * lengths * has_strings)))
        most = int(np.diff(tokens[columns.predicate_start]).max(initial=0)) + extras + 1
        if len(self.index.walk.node) <= most:
            self.index = self.index._replace(walk=new_walk(2 * most))

    def _note_words(self, columns: SubscriptionColumns, first_alternative: int) -> None:
        """Note which attributes are searched for words: strings on them offer words too."""
        codes = columns.attribute[columns.kind & KIND_MASK == TERMS]
        if not self._has_words[codes].all():
            self._has_words[codes] = 1
            self._settle_odd(0, first_alternative)

    def _settle_odd(self, first: int, last: int) -> None:
        """Let the definition say which odd alternatives are impossible, and what others offer."""
        found = np.zeros(last - first, np.uint8)
        find_odd(self.index.columns, first, last, self._has_words, found)
        self.index.states[first:last][found == NOWHERE] = IMPOSSIBLE
        for alternative in (np.flatnonzero(found == ODD) + first).tolist():
            asked = alternative_of(self.index.columns, alternative, self._names, self.schema)
            if possible(asked):
                self._offer(alternative, extra_tokens(asked, self.schema))
            else:
                self.index.states[alternative] = IMPOSSIBLE

    def _offer(self, alternative: int, tokens: list[int]) -> None:
        """Let *alternative* offer *tokens* besides what the kernel finds."""
        extras = self.index.extras
        start, stop = self._extras_used, self._extras_used + len(tokens)
        held = longer(extras.token, stop)
        held[start:stop] = tokens
        extras.start[alternative], extras.stop[alternative] = start, stop
        self._extras_used = stop
        self.index = self.index._replace(extras=extras._replace(token=held))
        room = len(self.index.walk.node)
        if len(tokens) > self._most_extras:
            self._most_extras = len(tokens)
            self.index = self.index._replace(walk=new_walk(room + len(tokens)))
