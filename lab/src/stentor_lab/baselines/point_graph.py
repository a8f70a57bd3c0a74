"""G_k over points, with any of the indexes: what the paper measured.

graph = PointGraph(dims=6, index="kd_tree")
rows = graph.add(points)
graph.run(np.array([rows[0], rows[1], ~rows[0]]))     # subscribe, subscribe, unsubscribe
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from stentor.covering.graph.contract import split_equals
from stentor.covering.graph.g_k import EdgeTable
from stentor.covering.kd_tree.check import check_tree
from stentor.covering.kd_tree.insert import new_tree
from stentor.covering.kd_tree.layout import (
    MOST_DIMENSIONS,
    BucketLimits,
    grow_trees,
    is_too_deep,
    new_forest,
    with_entries,
)
from stentor.covering.kd_tree.match import new_matching
from stentor.encoding.columns import Float64, Int64
from stentor.errors import SettingsError
from stentor.index.arena import extended
from stentor_lab.baselines.curve import new_curve
from stentor_lab.baselines.curve_check import check_curve, roomier_curve
from stentor_lab.baselines.curve_search import new_curve_search
from stentor_lab.baselines.point_commands import (
    CURVE,
    FOREST,
    ROWS,
    PointIndex,
    enter_all,
    run_commands,
)
from stentor_lab.baselines.point_rows import new_rows

#: A bucket that is never split: the whole tree is one vector scan.
NEVER_SPLIT: Final = BucketLimits(1 << 40, 0)
INDEXES: Final = {"kd_tree": FOREST, "z_curve": CURVE, "block_scan": FOREST, "row_scan": ROWS}


@dataclass(frozen=True, slots=True)
class PointSettings:
    """Which index answers cov_k, and its parameters."""

    index: str = "kd_tree"
    overflow: int = 64  # points of a k-d bucket before it is split
    underflow: int = 16  # and before it is merged
    bits: int = 8  # of each dimension on the Z-curve

    def __post_init__(self) -> None:
        if self.index not in INDEXES:
            raise SettingsError(f"no index {self.index!r} for points; there are {list(INDEXES)}")
        if not 0 <= self.underflow <= self.overflow // 2 or self.overflow < 2:
            raise SettingsError(
                f"a bucket of {self.overflow} points is merged below {self.underflow}; take an "
                "overflow limit of at least 2 and an underflow limit of at most half of it"
            )
        if not 1 <= self.bits <= 32:
            raise SettingsError(f"{self.bits} bits in each dimension; take 1 to 32")

    @property
    def limits(self) -> BucketLimits:
        """When a bucket is split and merged."""
        if self.index == "block_scan":
            return NEVER_SPLIT
        return BucketLimits(self.overflow, self.underflow)


class PointGraph(EdgeTable):
    """The relation graph G_k of points that subscribe and unsubscribe."""

    def __init__(self, dims: int, k: int = 1, settings: PointSettings | None = None) -> None:
        super().__init__(k)
        if not 1 <= dims <= MOST_DIMENSIONS:
            raise SettingsError(f"{dims} dimensions; take 1 to {MOST_DIMENSIONS}")
        self.dims = dims
        self.settings = settings or PointSettings()
        self._which = INDEXES[self.settings.index]
        self._low = self._high = np.full(dims, np.nan)
        forest = grow_trees(new_forest(), dims)
        new_tree(forest, dims)
        curve = new_curve(np.zeros(dims), np.zeros(dims), self.settings.bits)
        self.index = PointIndex(
            points=np.zeros(0),
            forest=forest,
            limits=self.settings.limits,
            search=new_matching(forest),
            curve=curve,
            curve_search=new_curve_search(curve),
            rows=new_rows(),
            state=np.zeros(2, np.int64),
        )

    def add(self, points: Float64) -> Int64:
        """The rows of *points* (points, dims), which subscribe to nothing yet."""
        first = self.count
        rows = np.arange(first, first + len(points))
        self.grow(len(points))
        index = self.index
        held = extended(index.points, self.count * self.dims)
        held[first * self.dims : self.count * self.dims] = points.reshape(-1)
        words = int(index.curve.shape[2])
        self.index = index._replace(
            points=held,
            forest=with_entries(index.forest, self.count),
            curve=index.curve._replace(key_of=extended(index.curve.key_of, self.count * words)),
            rows=index.rows._replace(
                entries=extended(index.rows.entries, self.count),
                position_of=extended(index.rows.position_of, self.count),
            ),
        )
        if self._which == CURVE:
            self._fit_cells(points)
        return rows

    def point(self, row: int) -> Float64:
        """The point of *row*."""
        return self.index.points[row * self.dims : (row + 1) * self.dims]

    def covers(self, one: int, other: int) -> bool:
        """Whether the point *one* dominates the point *other*."""
        return bool((self.point(one) >= self.point(other)).all())

    def related(self, row: int, among: Int64) -> tuple[Int64, Int64]:
        """Those *among* the rows that cover *row*, and those that it covers; equals by age."""
        points = self.index.points[: self.count * self.dims].reshape(-1, self.dims)
        above = among[(points[among] >= points[row]).all(axis=1)]
        below = among[(points[among] <= points[row]).all(axis=1)]
        return split_equals(row, above, below)

    def _run(self, commands: Int64) -> tuple[int, int]:
        done, sent = run_commands(
            self.edges, self.index, self._which, self.dims, self.k, commands, self.result
        )
        if done < len(commands):
            self._make_room()
        if self._which == FOREST and is_too_deep(self.index.forest, self.count):
            self._grow_anew()
        return done, sent

    def _make_room(self) -> None:
        forest = grow_trees(self.index.forest, self.dims)
        curve = roomier_curve(self.index.curve)
        self.index = self.index._replace(forest=forest, search=new_matching(forest), curve=curve)

    def check(self) -> None:
        super().check()
        rows = np.flatnonzero(self.state).tolist()
        index = self.index
        if self._which == FOREST:
            found = check_tree(index.forest, 0, self.dims, index.limits)
        elif self._which == CURVE:
            points = index.points[: self.count * self.dims].reshape(-1, self.dims)
            found = check_curve(index.curve, points)
        else:
            found = index.rows.entries[: index.rows.used[0]].tolist()
        assert sorted(found) == rows, "the index holds what stands"

    def _fit_cells(self, points: Float64) -> None:
        """Let the cells of the curve span all finite coordinates; others go to the last cells.

        Where they did not, cells are made half as wide again as needed, and all keys anew.
        """
        finite = np.where(np.isfinite(points), points, np.nan)
        low = np.fmin(self._low, np.fmin.reduce(finite, axis=0, initial=np.nan))
        high = np.fmax(self._high, np.fmax.reduce(finite, axis=0, initial=np.nan))
        if np.array_equal(low, self._low, equal_nan=True) and np.array_equal(
            high, self._high, equal_nan=True
        ):
            return
        slack = 0.0 if np.isnan(self._low).all() else 0.5 * np.nan_to_num(high - low)
        self._low = np.where(low < self._low, low - slack, low)
        self._high = np.where(high > self._high, high + slack, high)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scale = 2.0**self.settings.bits / (self._high - self._low)
        curve = new_curve(
            np.nan_to_num(self._low), np.nan_to_num(scale, posinf=0.0), self.settings.bits
        )
        self.index = self.index._replace(curve=curve._replace(key_of=self.index.curve.key_of))
        self._refill()

    def _grow_anew(self) -> None:
        """Build the tree again from its points in random order: sorted ones had made it a chain."""
        entries = len(self.index.forest.node_of)
        forest = with_entries(grow_trees(new_forest(), self.dims), entries)
        new_tree(forest, self.dims)
        self.index = self.index._replace(forest=forest, search=new_matching(forest))
        self._refill()

    def _refill(self) -> None:
        """Enter every row that stands into an index that is empty."""
        rows = np.random.default_rng(0).permutation(np.flatnonzero(self.state))
        while len(rows):
            done = enter_all(self.index, self._which, self.dims, rows)
            rows = rows[done:]
            if len(rows):
                self._make_room()
