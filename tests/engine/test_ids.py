"""Ids by row and rows by id, as a dictionary would have them; texts that are packed into bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.engine import texts
from stentor.engine.ids import NO_ROW, HashOrder, IdTable, StringArrays
from stentor.engine.texts import ExpressionTexts

IDS = st.text("aé0", max_size=2)


@given(
    base=st.lists(IDS, unique=True, max_size=6),
    steps=st.lists(st.one_of(st.lists(IDS, max_size=40), IDS), max_size=12),
)
def test_rows_by_id_are_those_of_a_dictionary(
    base: list[str], steps: list[list[str] | str]
) -> None:
    arrays = StringArrays.of(base)
    table = IdTable(arrays, HashOrder.of(arrays)) if base else IdTable()
    rows = {id: row for row, id in enumerate(base)}
    count = len(base)
    for step in steps:
        if isinstance(step, str):
            row = rows.pop(step, NO_ROW)
            table.forget(step, row) if row != NO_ROW else None
        else:
            table.add(step)
            rows.update((id, row) for row, id in enumerate(step, start=count))
            count += len(step)
        assert len(table) == len(rows)
        assert all(table.row(id) == row for id, row in rows.items())
    assert table.row("no such id") == NO_ROW
    assert len(table.ids) == count


def test_many_ids_are_found_after_the_table_has_grown() -> None:
    table = IdTable()
    ids = [f"s{row}" for row in range(5_000)]
    table.add_new(ids[:3_000])
    assert table.are_new(ids[3_000:])
    assert not table.are_new(["t", ids[17]])
    assert not table.are_new(["t", "t"])
    for id in ids[3_000:]:
        table.add([id])
    assert [table.row(id) for id in ids] == list(range(5_000))
    table.forget("s7", 7)
    assert table.row("s7") == NO_ROW
    assert not table.are_new(["s7"])
    kept = table.kept(np.array([2, 4, 4_999]))
    assert [kept.row(id) for id in ("s2", "s4", "s4999", "s3")] == [0, 1, 2, NO_ROW]


@given(cuts=st.lists(st.integers(0, 9), max_size=30))
def test_texts_stay_what_they_are_when_they_are_packed(cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "MANY_ADDED", 4)
        held, expected = ExpressionTexts(StringArrays.of(["é0", "b1"])), ["é0", "b1"]
        for cut in cuts:
            added = [f"price < {len(expected) + one}" for one in range(cut)]
            held.extend(added)
            expected += added
        assert [held[row] for row in range(len(held))] == expected
        assert held.take(np.arange(len(held))[::-1]).to_pylist() == expected[::-1]
        odd = np.arange(1, len(held), 2)
        assert held.kept(odd).take(np.arange(len(odd))).to_pylist() == expected[1::2]
        assert len(held._parts) <= 6 + len(cuts).bit_length()
