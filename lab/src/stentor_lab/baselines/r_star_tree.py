"""The R*-Tree of a library (rtree over libspatialindex), of subscriptions and of live events.

A dimension for each attribute, and two for the location; what is not asked for, or not there, spans
the whole domain. Filled by the library's bulk loading; asked through Python, item by item.

Paper: Beckmann, Kriegel, Schneider, Seeger: The R*-tree (1990), as compared with in MO-Tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, MatchPairs, SubscriptionColumns
from stentor_lab.baselines.dimensions import AXES, BoundedPredicates, bounded, domains
from stentor_lab.baselines.rival import Rival
from stentor_lab.baselines.spatial_rival import verified_live

#: Dimensions at most: those that most alternatives bound.
MOST_DIMENSIONS: Final = 22
#: Bytes of an entry: a box of doubles, and its number. The library does not tell its own.
_NUMBER: Final = 8


class RStarTree(Rival):
    """Boxes in many dimensions."""

    name = "r_star_tree"

    def __init__(self) -> None:
        super().__init__()
        self._choose(np.zeros(0, np.int64))

    def _choose(self, alternatives: Int64) -> None:
        columns = self.subscriptions.columns
        found = bounded(columns, alternatives)
        count = AXES * (int(columns.attribute.max(initial=0)) + 1)
        used = np.bincount(found.dimension, minlength=count)
        order = np.argsort(-used, kind="stable")[:MOST_DIMENSIONS]
        chosen = order[used[order] > 0]
        low, high = domains(found, count)
        # Two at least: the library has no trees of one dimension.
        self._chosen = np.concatenate((chosen, np.full(max(0, 2 - len(chosen)), -1)))
        self._low = np.where(self._chosen >= 0, low[self._chosen], 0.0)
        self._high = np.where(self._chosen >= 0, high[self._chosen], 1.0)
        self._tree, self._boxes = self._fresh(), np.zeros((0, 2 * len(self._chosen)))
        self._live_tree, self._live_boxes = self._fresh(), self._boxes
        if self.live.count:
            self._hold_events(0)

    def _fresh(self, boxes: Float64 | None = None, items: Int64 | None = None) -> Any:
        from rtree import index

        settings = index.Property(dimension=len(self._chosen), variant=index.RT_Star)
        if boxes is None or items is None or not len(items):
            return index.Index(properties=settings)
        stream = ((item, box, None) for item, box in _listed(items, boxes))
        return index.Index(stream, properties=settings)

    # Subscriptions.

    def _insert(self, alternatives: Int64) -> None:
        boxes = self._boxes_of(self.subscriptions.columns, alternatives)
        if not len(self._boxes):
            self._tree = self._fresh(boxes, alternatives)
        else:
            for item, box in _listed(alternatives, boxes):
                self._tree.insert(item, box)
        self._boxes = _kept(self._boxes, alternatives, boxes)

    def _remove(self, alternatives: Int64) -> None:
        for item in alternatives.tolist():
            if item < len(self._boxes) and not np.isnan(self._boxes[item, 0]):
                self._tree.delete(item, self._boxes[item].tolist())
                self._boxes[item] = np.nan

    def _boxes_of(self, columns: SubscriptionColumns, alternatives: Int64) -> Float64:
        """Boxes of *alternatives*, the corner of the low ends first."""
        found: BoundedPredicates = bounded(columns, alternatives)
        width = len(self._chosen)
        box = np.empty((len(alternatives), 2 * width))
        box[:, :width], box[:, width:] = self._low, self._high
        place = {int(one): position for position, one in enumerate(self._chosen) if one >= 0}
        axis = np.array([place.get(one, -1) for one in found.dimension.tolist()], np.int64)
        known = axis >= 0
        of, axis = found.of[known], axis[known]
        low = np.clip(found.low[known], self._low[axis], self._high[axis])
        high = np.clip(found.high[known], self._low[axis], self._high[axis])
        np.maximum.at(box, (of, axis), low)
        np.minimum.at(box, (of, axis + width), high)
        box[:, width:] = np.maximum(box[:, :width], box[:, width:])  # a contradiction has no size
        return box

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        found = 0
        for one, box in enumerate(self._event_boxes(events, np.arange(len(events.until))).tolist()):
            items = list(self._tree.intersection(box))
            stop = min(found + len(items), len(event))
            if found < stop:
                event[found:stop] = one
                alternative[found:stop] = items[: stop - found]
            found += len(items)
        return found

    # Live events.

    def _event_boxes(self, events: EventColumns, rows: Int64) -> Float64:
        width = len(self._chosen)
        box = np.empty((len(rows), 2 * width))
        box[:, :width], box[:, width:] = self._low, self._high
        place = {int(one): position for position, one in enumerate(self._chosen) if one >= 0}
        for position, row in enumerate(rows.tolist()):
            for value in range(events.value_start[row], events.value_start[row + 1]):
                low, high = float(events.low[value]), float(events.high[value])
                for axis, (least, most) in enumerate(
                    ((min(low, high), max(low, high)), (low, low), (high, high))
                ):
                    at = place.get(int(events.attribute[value]) * AXES + axis)
                    if at is not None:
                        ends = np.clip((least, most), self._low[at], self._high[at])
                        box[position, at], box[position, at + width] = ends
        return box

    def _hold_events(self, first: int) -> None:
        rows = np.arange(first, self.live.count)
        boxes = self._event_boxes(self.live.columns, rows)
        if first == 0:
            current = self.live.hidden[rows] == 0
            self._live_tree = self._fresh(boxes[current], rows[current])
        else:
            for item, box in _listed(rows, boxes):
                self._live_tree.insert(item, box)
        self._live_boxes = _kept(self._live_boxes, rows, boxes)

    def _drop_events(self, rows: Int64) -> None:
        for item in rows.tolist():
            if not np.isnan(self._live_boxes[item, 0]):
                self._live_tree.delete(item, self._live_boxes[item].tolist())
                self._live_boxes[item] = np.nan

    def _renumbered(self, kept: Int64, count: int) -> None:
        self._live_tree = self._fresh()
        self._live_boxes = np.zeros((0, 2 * len(self._chosen)))
        self._hold_events(0)

    def _match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription its live events, from the tree of events."""
        alternatives = np.arange(len(columns.predicate_start) - 1)
        event, alternative = [], []
        for one, box in enumerate(self._boxes_of(columns, alternatives).tolist()):
            items = list(self._live_tree.intersection(box))
            event += items
            alternative += [one] * len(items)
        pairs = np.array(event, np.int64), np.array(alternative, np.int64)
        return verified_live(columns, self.live.columns, self.live.hidden, *pairs)

    def _check_live(self) -> None:
        assert len(self._live_boxes) >= self.live.current_count

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        entries = self.subscriptions.current_count + self.live.current_count
        beside = entries * (16 * len(self._chosen) + _NUMBER)
        return {**inherited, "bytes": inherited["bytes"] + beside}


def _listed(items: Int64, boxes: Float64) -> Iterator[tuple[int, list[float]]]:
    yield from zip(items.tolist(), boxes.tolist(), strict=True)


def _kept(boxes: Float64, items: Int64, fresh: Float64) -> Float64:
    """*boxes* by item, with *fresh* ones."""
    most = int(items.max(initial=-1)) + 1
    if most > len(boxes):
        more = np.full((most - len(boxes), fresh.shape[1]), np.nan)
        boxes = np.concatenate((boxes, more))
    boxes[items] = fresh
    return boxes
