"""Costs of partitions beyond equation 1: a look ahead, and motion (equations 8 to 13, Algorithm 8).

A partition may gain little by itself and much when its children are partitioned by the other kind.
What is known of the motion of subscribers is kept in `MotionHistory`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.ap_tree.layout import ApEntries, ApKernelSettings
from stentor.index.ap_tree.partitions import ApBuildScratch, EventSample, children_for, drawn
from stentor.index.arena import GrowingArray
from stentor.index.contract import NOTHING_LEARNED, Learned

#: T_max: a reconstruction is expected after so many timestamps at the latest.
MOST_TIMESTAMPS = 100
#: Entries whose motion is followed.
FOLLOWED = 512

#: What is learned: the last step (x, y) and whether it moved, by row; timestamps and events.
STEP, HAS_MOVED, PACE = "motion.step", "motion.has_moved", "motion.pace"


@kernel
def cuts_of_sample(
    work: ApBuildScratch, keywords: int, count: int, sample: float, policy: ApKernelSettings
) -> float:
    """What keyword partition would cost *sample* entries, drawn from the *count* of the node.

    work.weight and work.likely are of the node's keywords. An event visits the cuts of those
    keywords that it has and that are among the sample's.
    """
    if sample <= policy.leaf or keywords == 0:
        return float(sample + policy.visit)
    part = sample / count
    hits = 0.0
    for keyword in range(keywords):
        weight = work.weight[keyword + 1] - work.weight[keyword]
        chance = work.likely[keyword + 1] - work.likely[keyword]
        hits += chance * (1.0 - math.exp(-weight * part))
    cuts = children_for(policy, int(sample))
    without = sample * (1.0 - work.weight[keywords] / count)
    cost = min(hits, float(cuts)) * (sample / cuts + policy.visit) + policy.visit
    return float(cost + without + (policy.visit if without > 0.0 else 0.0))


@kernel
def space_then_keywords(
    work: ApBuildScratch, keywords: int, count: int, policy: ApKernelSettings
) -> float:
    """The cost of a grid with the cells that work.expected says, each then cut by keywords."""
    cell, kept = work.expected[0], work.expected[1]
    cost = policy.visit + min(
        cell + policy.visit, cuts_of_sample(work, keywords, count, cell, policy)
    )
    if kept > 0.0:
        cost += min(kept + policy.visit, cuts_of_sample(work, keywords, count, kept, policy))
    return float(cost)


@kernel
def keywords_then_space(
    work: ApBuildScratch, cuts: int, cells: int, count: int, without: int, policy: ApKernelSettings
) -> float:
    """The cost of the cuts in work.cut, each then gridded; *cells* is what the node's grid has."""
    reached = (work.expected[0] + work.expected[1]) / count if cells > 0 else 1.0
    cost = policy.visit
    for cut in range(cuts):
        start, stop = work.cut[cut], work.cut[cut + 1]
        weight = work.weight[stop] - work.weight[start]
        chance = min(1.0, work.likely[stop] - work.likely[start])
        cost += chance * gridded(weight, reached, cells, policy)
    return cost + (gridded(float(without), reached, cells, policy) if without > 0 else 0.0)


@kernel_inline
def gridded(weight: float, reached: float, cells: int, policy: ApKernelSettings) -> float:
    """What *weight* entries cost, in a grid where that pays: a coarser one reaches more."""
    flat = weight + policy.visit
    if weight <= policy.leaf or cells == 0:
        return flat
    own = children_for(policy, int(weight))
    share = min(1.0, reached + 1.0 / own)
    return min(flat, weight * share + 2.0 * policy.visit)


@kernel
def moving_cost(
    entries: ApEntries,
    segment: Int32,
    region: Float64,
    sample: EventSample,
    columns: int,
    rows: int,
    depth: int,
    keywords: int,
    policy: ApKernelSettings,
    tally: Int64,
) -> float:
    """C_slu + C_irc of an s-node, per event of a timestamp: comparable with C_imm."""
    if len(sample.dx) == 0 or sample.rate <= 0.0:
        return 0.0
    width, height = region[2] - region[0], region[3] - region[1]
    steps = math.log2(max(2, columns * rows))
    updates = 0.0
    for entry in segment:
        passed = regions_passed(sample.dx[entry], width)
        passed += regions_passed(sample.dy[entry], height)
        updates += 2.0 * min(1.0, passed) * (depth + 1) * steps
    after = timestamps_to_rebuild(
        entries, segment, region, sample, columns, rows, policy.divergence, tally
    )
    rebuilding = 0.0
    if after < MOST_TIMESTAMPS:
        count = len(segment)
        levels = max(0.0, math.log(count / policy.leaf) / math.log(max(2, policy.fanout)))
        each = count * (steps + math.sqrt(columns * rows)) + columns * rows * keywords
        rebuilding = each * (levels + 1.0) / after
    return (updates + rebuilding) / sample.rate


@kernel_inline
def regions_passed(distance: float, length: float) -> float:
    """ζ along one dimension: how many regions of that *length* it passes in a timestamp."""
    if distance == 0.0:
        return 0.0
    return abs(distance) / length if 0.0 < length < math.inf else 1.0


@kernel
def timestamps_to_rebuild(
    entries: ApEntries,
    segment: Int32,
    region: Float64,
    sample: EventSample,
    columns: int,
    rows: int,
    divergence: float,
    tally: Int64,
) -> int:
    """T_Δ by Algorithm 8: when the entries will be distributed otherwise over an even grid.

    What leaves the region is counted as one more cell.
    """
    columns, rows = min(columns, 8), min(rows, 8)
    cells = columns * rows + 1
    stride = (len(segment) + FOLLOWED - 1) // FOLLOWED
    spread_after(entries, segment, stride, region, sample, columns, rows, 0, tally)
    for cell in range(cells):
        tally[cells + cell] = tally[cell]
    for time in range(1, MOST_TIMESTAMPS):
        spread_after(entries, segment, stride, region, sample, columns, rows, time, tally)
        if divergence_of(tally, cells) > divergence:
            return time
    return MOST_TIMESTAMPS


@kernel_inline
def spread_after(
    entries: ApEntries,
    segment: Int32,
    stride: int,
    region: Float64,
    sample: EventSample,
    columns: int,
    rows: int,
    time: int,
    tally: Int64,
) -> None:
    """Fill *tally* with how many entries each cell will have at *time*."""
    for cell in range(columns * rows + 1):
        tally[cell] = 0
    width = (region[2] - region[0]) / columns
    height = (region[3] - region[1]) / rows
    for number in range((len(segment) + stride - 1) // stride):
        entry = segment[drawn(number, stride, len(segment))]
        box = entries.box[4 * entry : 4 * entry + 4]
        if not (-math.inf < box[0] and box[2] < math.inf):  # everywhere, or nowhere
            continue
        x = (box[0] + box[2]) / 2.0 + time * sample.dx[entry] - region[0]
        y = (box[1] + box[3]) / 2.0 + time * sample.dy[entry] - region[1]
        cell = columns * rows
        if 0.0 <= x <= columns * width and 0.0 <= y <= rows * height and width * height > 0.0:
            column = min(columns - 1, int(x / width))
            row = min(rows - 1, int(y / height))
            cell = row * columns + column
        tally[cell] += 1


@kernel_inline
def divergence_of(tally: Int64, cells: int) -> float:
    """D_KL(w_old | w) of *cells* counts in *tally* and the old counts after them; smoothed."""
    total = before = 0.0
    for cell in range(cells):
        total += tally[cell] + 0.5
        before += tally[cells + cell] + 0.5
    found = 0.0
    for cell in range(cells):
        old = (tally[cells + cell] + 0.5) / before
        found += old * math.log(old * total / (tally[cell] + 0.5))
    return found


class Motion:
    """How far each alternative's subscriber went in a timestamp, and how many events came."""

    def __init__(self, step: Float64, alternative_start: Int64, rate: float) -> None:
        self._step, self._start = step, alternative_start
        self.rate = rate

    def of(self, alternatives: Int32) -> tuple[Float64, Float64]:
        """The steps of *alternatives*, along x and along y."""
        rows = np.searchsorted(self._start, alternatives, side="right") - 1
        steps = self._step.reshape(-1, 2)[rows]
        return steps[:, 0].copy(), steps[:, 1].copy()


class MotionHistory:
    """The last step of each subscriber that moved; nothing is kept until one does.

    A timestamp is the time in which each of those reports once.
    """

    def __init__(self, learned: Learned = NOTHING_LEARNED) -> None:
        self._step = GrowingArray(np.float64)  # x, y by row
        self._has_moved = GrowingArray(np.uint8)  # by row
        self._moves = 0.0
        self._movers = 0
        self.events = 0  # that were matched
        if HAS_MOVED in learned:
            self._step.keep(learned[STEP])
            self._has_moved.keep(learned[HAS_MOVED])
            timestamps, events = learned[PACE].tolist()
            self._movers = int(np.count_nonzero(learned[HAS_MOVED]))
            self._moves = timestamps * self._movers
            self.events = int(events)

    def extend(self, rows: int) -> None:
        """Grow to so many *rows*."""
        if self._moves and 2 * rows > len(self._step):
            self._step.extend(0, 2 * rows - len(self._step))
            self._has_moved.extend(0, rows - len(self._has_moved))

    def add(self, rows: Int64, before: Float64, after: Float64) -> None:
        """*rows* went from *before* to *after* (2 × rows)."""
        self._moves += len(rows)
        if len(rows):
            self.extend(int(rows.max()) + 1)
            self._movers += int(np.count_nonzero(self._has_moved.view[rows] == 0))
            self._has_moved.writable[rows] = 1
            step = np.nan_to_num(after - before).reshape(-1, 2)
            self._step.writable.reshape(-1, 2)[rows] = step

    @property
    def timestamps(self) -> float:
        """How often each of those that move has reported, on average."""
        return self._moves / self._movers if self._movers else 0.0

    def motion(self, alternative_start: Int64) -> Motion | None:
        """What is known of all rows; None where no subscriber has moved."""
        if not self._moves or not self._movers:
            return None
        self.extend(len(alternative_start) - 1)
        return Motion(self._step.view, alternative_start, self.events / self.timestamps)

    def learned(self, rows: Int64) -> Learned:
        """What a `MotionHistory` of *rows* alone starts from."""
        if not self._movers:
            return NOTHING_LEARNED
        self.extend(int(rows.max(initial=-1)) + 1)
        return {
            STEP: self._step.view.reshape(-1, 2)[rows].reshape(-1),
            HAS_MOVED: self._has_moved.view[rows],
            PACE: np.array([self.timestamps, self.events]),
        }


def joined(base: Learned, delta: Learned, is_base: npt.NDArray[np.bool_]) -> Learned:
    """What is learned of all rows, from those of a base and those of a delta over it.

    Both see every event, and the base those before there was a delta. A timestamp of the delta
    is one of all: its rows are those that moved.
    """
    if not base and not delta:
        return NOTHING_LEARNED
    step, has_moved = np.zeros((len(is_base), 2)), np.zeros(len(is_base), np.uint8)
    pace = np.zeros(2)
    for learned, rows in ((base, is_base), (delta, ~is_base)):
        if learned:
            step[rows] = learned[STEP].reshape(-1, 2)
            has_moved[rows] = learned[HAS_MOVED]
            pace = np.array([pace[0] + learned[PACE][0], max(pace[1], learned[PACE][1])])
    return {STEP: step.reshape(-1), HAS_MOVED: has_moved, PACE: pace}
