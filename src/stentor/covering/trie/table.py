"""Rows of columns, and all that the walk through the trie needs to know of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from stentor.covering.covers import Alternatives, alternatives_cover, possible
from stentor.covering.implies.decode import (
    NOWHERE,
    ODD,
    alternative_of,
    alternatives_of_row,
    find_odd,
    row_covers,
)
from stentor.covering.implies.operands import (
    BOOLEAN,
    COVERED,
    NOT_COVERED,
    NUMBER,
    POINT,
    STRING,
    UNDECIDED,
    UNKNOWN,
)
from stentor.covering.kd_tree.layout import BucketLimits, grow, new_forest, with_entries
from stentor.covering.kd_tree.match import new_matching
from stentor.covering.trie.insert import insert_rows
from stentor.covering.trie.layout import (
    NEED_COORDINATES,
    NEED_NODES,
    NEED_SLOTS,
    NEED_TRIE,
    QUESTION_ROW,
    TrieArrays,
    grow_trie,
    new_trie,
    open_questions,
    trie_scratch,
)
from stentor.covering.trie.tokens import IMPOSSIBLE, Extras, count_choices, extra_tokens
from stentor.encoding.columns import Int64, SubscriptionColumns, subscription_count
from stentor.encoding.kinds import KEYWORDS, KIND_MASK, MEMBERSHIP
from stentor.index.arena import GrowingColumns, extended
from stentor.model import Kind, Schema

_CODES: Final = {
    Kind.NUMBER: NUMBER,
    Kind.TIMESTAMP: NUMBER,
    Kind.BOOLEAN: BOOLEAN,
    Kind.STRING: STRING,
    Kind.SET: STRING,
    Kind.POINT: POINT,
}


class TrieTable:
    """Rows whose attributes *schema* knows, and the index of those that were inserted."""

    def __init__(self, schema: Schema, limits: BucketLimits) -> None:
        self.count = 0
        self.schema = schema
        self._table = GrowingColumns(SubscriptionColumns)
        self._has_words = np.zeros(0, np.uint8)
        self._names: list[str] = []
        self._extras_used = self._most_extras = 0
        forest = new_forest()
        nothing = np.zeros(0, np.int64)
        self.index = TrieArrays(
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
            matching=new_matching(forest),
            walk=trie_scratch(16),
            questions=open_questions(),
            needs=np.zeros(4, np.int64),
        )
        self._interest = lru_cache(maxsize=4096)(self._interest_of)

    def add(self, columns: SubscriptionColumns) -> Int64:
        """The new rows of *columns*, which are not in the index yet."""
        first, count = self.count, subscription_count(columns)
        first_alternative = int(self._table.view.alternative_start[-1])
        self._table.append(columns)
        self.count += count
        self._learn()
        view = self._table.view
        alternatives = len(view.predicate_start) - 1
        index = self.index
        rows = np.arange(first, first + count)
        counts = np.empty(alternatives - first_alternative, np.int64)
        count_choices(view, first_alternative, alternatives, counts)
        entry_start = extended(index.entry_start, alternatives + 1)
        first_entry = int(entry_start[first_alternative])
        entry_start[first_alternative + 1 : alternatives + 1] = first_entry + np.cumsum(counts)
        entries = int(entry_start[alternatives])
        row_of = extended(index.row_of, entries)
        of_alternative = np.repeat(rows, np.diff(columns.alternative_start))
        row_of[first_entry:entries] = np.repeat(of_alternative, counts)
        extras = index.extras._replace(
            start=extended(index.extras.start, alternatives),
            stop=extended(index.extras.stop, alternatives),
        )
        self.index = index._replace(
            columns=view,
            states=extended(index.states, alternatives),
            entry_start=entry_start,
            row_of=row_of,
            node_of=extended(index.node_of, entries),
            extras=extras,
            forest=with_entries(index.forest, entries),
        )
        self._make_walk(columns, self._most_extras)
        self._note_words(columns, first_alternative)
        self._resolve_odd(first_alternative, alternatives)
        return rows

    def insert(self, rows: Int64) -> None:
        """Insert *rows* into the index."""
        left = np.ascontiguousarray(rows, np.int64)
        while len(left):
            done = insert_rows(self.index, self.schema.plane, left)
            left = left[done:]
            if len(left):
                self.grow()

    def rebuild(self, rows: Int64) -> None:
        """Rebuild the index of *rows* alone, in random order: sorted, they make a chain."""
        forest = with_entries(new_forest(), len(self.index.forest.node_of))
        trie = new_trie()
        self.index = self.index._replace(forest=forest, matching=new_matching(forest), trie=trie)
        self.insert(np.random.default_rng(0).permutation(rows))

    def covers(self, one: int, other: int) -> bool:
        """Whether the row *one* covers the row *other*."""
        index = self.index
        verdict = row_covers(
            index.columns, index.kinds, self.schema.plane, index.states, one, other
        )
        return (
            self._covers_by_definition(one, other) if verdict == UNDECIDED else verdict == COVERED
        )

    def grow(self) -> None:
        """Grow the arrays to what the last row needs."""
        index = self.index
        needs = index.needs.tolist()
        forest = grow(index.forest, needs[NEED_NODES], needs[NEED_COORDINATES], needs[NEED_SLOTS])
        more = needs[NEED_TRIE] - int(index.trie.used[0])
        self.index = index._replace(
            forest=forest, matching=new_matching(forest), trie=grow_trie(index.trie, more)
        )

    def answer(self) -> None:
        """Let the definition answer all open questions; grow where they were full."""
        questions = self.index.questions
        row, count = questions.state.tolist()
        for position, question in enumerate(questions.question[:count].tolist()):
            if questions.answer[position] == UNDECIDED:
                pair = (question, row) if question >= 0 else (row, ~question)
                questions.answer[position] = (
                    COVERED if self._covers_by_definition(*pair) else NOT_COVERED
                )
        if count == len(questions.question):
            grown = questions._replace(
                question=extended(questions.question, 2 * count),
                answer=extended(questions.answer, 2 * count),
            )
            self.index = self.index._replace(questions=grown)

    def _covers_by_definition(self, one: int, other: int) -> bool:
        return alternatives_cover(self._interest(one), self._interest(other))

    def _interest_of(self, row: int) -> Alternatives:
        return alternatives_of_row(self.index.columns, row, self._names, self.schema)

    def _learn(self) -> None:
        """Take over what the schema knows by now."""
        if len(self._names) != self.schema.code_count or UNKNOWN in self.index.kinds:
            self._names = self.schema.by_code
            found = [self.schema.kind(name) for name in self._names]
            codes = [UNKNOWN if kind is None else _CODES[kind] for kind in found]
            self.index = self.index._replace(kinds=np.array(codes, np.uint8))
            self._has_words = extended(self._has_words, len(codes))
            self._interest.cache_clear()
            self.index.questions.state[QUESTION_ROW] = -1

    def _make_walk(self, columns: SubscriptionColumns, extras: int = 0) -> None:
        """Scratch for the tokens of the largest alternative of *columns*, and so many extras."""
        if 3 * len(columns.kind) + 2 * len(columns.string_hash) + extras < len(
            self.index.walk.node
        ):
            return  # all of them together fit: the usual case for a few rows
        lengths = (columns.operand_stop - columns.operand_start).astype(np.int64)
        has_strings = np.isin(columns.kind & KIND_MASK, (MEMBERSHIP, KEYWORDS))
        tokens = np.concatenate(([0], np.cumsum(3 + 2 * lengths * has_strings)))
        most = int(np.diff(tokens[columns.predicate_start]).max(initial=0)) + extras + 1
        if len(self.index.walk.node) <= most:
            self.index = self.index._replace(walk=trie_scratch(2 * most))

    def _note_words(self, columns: SubscriptionColumns, first_alternative: int) -> None:
        """Note which attributes are searched for words: strings on them offer words too."""
        codes = columns.attribute[columns.kind & KIND_MASK == KEYWORDS]
        if not self._has_words[codes].all():
            self._has_words[codes] = 1
            self._resolve_odd(0, first_alternative)

    def _resolve_odd(self, first: int, last: int) -> None:
        """Let the definition decide which odd alternatives are impossible, what others offer."""
        found = np.zeros(last - first, np.uint8)
        find_odd(self.index.columns, first, last, self._has_words, found)
        self.index.states[first:last][found == NOWHERE] = IMPOSSIBLE
        for alternative in (np.flatnonzero(found == ODD) + first).tolist():
            wanted = alternative_of(self.index.columns, alternative, self._names, self.schema)
            if possible(wanted):
                self._offer(alternative, extra_tokens(wanted, self.schema))
            else:
                self.index.states[alternative] = IMPOSSIBLE

    def _offer(self, alternative: int, tokens: list[int]) -> None:
        """Let *alternative* offer *tokens* besides what the kernel finds."""
        extras = self.index.extras
        start, stop = self._extras_used, self._extras_used + len(tokens)
        grown = extended(extras.token, stop)
        grown[start:stop] = tokens
        extras.start[alternative], extras.stop[alternative] = start, stop
        self._extras_used = stop
        self.index = self.index._replace(extras=extras._replace(token=grown))
        capacity = len(self.index.walk.node)
        if len(tokens) > self._most_extras:
            self._most_extras = len(tokens)
            self.index = self.index._replace(walk=trie_scratch(capacity + len(tokens)))
