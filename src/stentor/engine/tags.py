"""Owners and labels of subscriptions, by row; and the rows of an owner, or of some labels.

A set of labels that several rows have is kept once, with the rows that have it. An event that is
meant for some labels is matched with the rows of the sets that hold all of them, and no others.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Int32, Int64
from stentor.engine.ids import StringArrays, StringStore
from stentor.index.arena import GrowingArray
from stentor.model.values.labels import EVERY_LABEL

#: The labels that a subscription must have to get an event; None: it is for all.
Among = frozenset[tuple[str, str]]


class Tags(NamedTuple):
    """Who a subscription belongs to, and its labels."""

    owner: str | None
    labels: Mapping[str, str]


NO_TAGS = Tags(None, {})


def among_of(labels: Mapping[str, str]) -> Among | None:
    """What an event that is for those with all of *labels* asks for."""
    return frozenset(labels.items()) if labels else None


class TagArrays(NamedTuple):
    """Tags as they are saved: texts of what occurs, and for each row which of them it has."""

    set_text: StringArrays  # of labels, as JSON; the first is of none
    owner_text: StringArrays  # the first is of nobody
    set_code: Int32  # (rows,)
    owner_code: Int32  # (rows,)


class TagTable:
    """The tags of rows; one that was given none takes no memory.

    Invariant: rows beyond `_set_code` have no tags.
    """

    def __init__(self, count: int = 0) -> None:
        self._count = count
        self._sets: list[Mapping[str, str]] = [{}]
        self._code_of_set: dict[Among, int] = {frozenset(): 0}
        self._owners: list[str] = [""]
        self._code_of_owner: dict[str, int] = {}
        self._set_code, self._owner_code = GrowingArray(np.int32), GrowingArray(np.int32)
        self._rows_of_set: list[array[int]] = [array("q")]  # none of those without labels
        self._rows_of_owner: list[array[int]] = [array("q")]
        self._sets_with: dict[tuple[str, str], list[int]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> Tags:
        if row >= len(self._set_code):
            return NO_TAGS
        owner = int(self._owner_code.view[row])
        return Tags(self._owners[owner] if owner else None, self._sets[self._set_code.view[row]])

    @property
    def is_empty(self) -> bool:
        """Whether no row has had a tag."""
        return len(self._sets) == len(self._owners) == 1

    def extend(self, tags: Sequence[Tags] | None, count: int) -> None:
        """Append the *tags* of *count* rows; None: they have none."""
        first, self._count = self._count, self._count + count
        if tags is None or not count:
            return
        missing = first - len(self._set_code)
        for known in (self._set_code, self._owner_code):
            known.extend(0, missing)
        sets = [self._code(one.labels) for one in tags]
        owners = [self._owner(one.owner) for one in tags]
        self._set_code.extend(np.array(sets, np.int32), count)
        self._owner_code.extend(np.array(owners, np.int32), count)
        for codes, rows in ((sets, self._rows_of_set), (owners, self._rows_of_owner)):
            for row, code in enumerate(codes, start=first):
                if code:
                    rows[code].append(row)

    def rows_among(self, among: Among) -> Int64:
        """The rows that have all labels of *among*, those that are gone too; in any order."""
        return self._rows(self._rows_of_set, self._codes(among))

    def rows_of(self, owner: str | None, labels: Mapping[str, str]) -> Int64:
        """The rows of *owner* (None: of anybody) that have all of *labels*."""
        among = among_of(labels)
        if owner is None:
            return np.arange(self._count) if among is None else self.rows_among(among)
        code = self._code_of_owner.get(owner)
        rows = self._rows(self._rows_of_owner, [] if code is None else [code])
        return rows if among is None else rows[self.have(rows, among)]

    def have(self, rows: Int64, among: Among) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of *rows* have all labels of *among*."""
        known = np.zeros(len(self._sets), np.bool_)
        known[self._codes(among)] = True
        codes = np.zeros(len(rows), np.int32)
        is_coded = rows < len(self._set_code)
        codes[is_coded] = self._set_code.view[rows[is_coded]]
        return known[codes]

    def kept(self, rows: Int64) -> TagTable:
        """The tags of *rows* alone, in that order."""
        if self.is_empty:
            return TagTable(len(rows))
        return TagTable.opened(self.arrays(rows))

    def arrays(self, rows: Int64) -> TagArrays:
        """The tags of *rows*, to be saved."""
        codes = []
        for known in (self._set_code, self._owner_code):
            own = np.zeros(len(rows), np.int32)
            is_coded = rows < len(known)
            own[is_coded] = known.view[rows[is_coded]]
            codes.append(
                np.unique(np.concatenate([np.zeros(1, np.int32), own]), return_inverse=True)
            )
        (sets, set_code), (owners, owner_code) = codes
        return TagArrays(
            StringArrays.of([json.dumps(dict(self._sets[one])) for one in sets.tolist()]),
            StringArrays.of([self._owners[one] for one in owners.tolist()]),
            set_code[1:].astype(np.int32),
            owner_code[1:].astype(np.int32),
        )

    @classmethod
    def opened(cls, arrays: TagArrays) -> TagTable:
        """The table that `arrays` were of."""
        sets = [json.loads(text) for text in StringStore(arrays.set_text)]
        owners = [text or None for text in StringStore(arrays.owner_text)]
        table = cls()
        pairs = zip(arrays.owner_code.tolist(), arrays.set_code.tolist(), strict=True)
        tags = [Tags(owners[owner], sets[one]) for owner, one in pairs]
        table.extend(tags, len(tags))
        return table

    def _codes(self, among: Among) -> list[int]:
        """The sets of labels that hold all of *among*."""
        found: set[int] | None = None
        for pair in among:
            own = set(self._sets_with.get(pair, ()))
            found = own if found is None else found & own
        every = self._sets_with.get(_EVERY, ())
        return sorted({*(found or ()), *every})

    def _rows(self, lists: list[array[int]], codes: Iterable[int]) -> Int64:
        found = [np.frombuffer(lists[code], np.int64) for code in codes if lists[code]]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _code(self, labels: Mapping[str, str]) -> int:
        key = frozenset(labels.items())
        code = self._code_of_set.get(key)
        if code is None:
            code = self._code_of_set[key] = len(self._sets)
            self._sets.append(dict(labels))
            self._rows_of_set.append(array("q"))
            for pair in key:
                self._sets_with.setdefault(pair, []).append(code)
        return code

    def _owner(self, owner: str | None) -> int:
        if owner is None:
            return 0
        code = self._code_of_owner.get(owner)
        if code is None:
            code = self._code_of_owner[owner] = len(self._owners)
            self._owners.append(owner)
            self._rows_of_owner.append(array("q"))
        return code


[_EVERY] = EVERY_LABEL.items()
