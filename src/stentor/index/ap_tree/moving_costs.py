"""What moving subscribers cost an s-node beyond matching: equations 8 to 13 and Algorithm 8.

A timestamp is the time in which every subscriber that moves reports once (T_upd = 1 for those, none
for the others). How far one goes in it is what it went between its last two reports.
"""

from __future__ import annotations

import math

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.ap_tree.layout import Entries, Policy
from stentor.index.ap_tree.partitions import Messages

#: T_max: a reconstruction is expected after so many timestamps at the latest.
MOST_TIMESTAMPS = 100
#: Entries whose way is followed.
FOLLOWED = 512


@kernel_part
def moving_cost(
    entries: Entries,
    segment: Int32,
    region: Float64,
    messages: Messages,
    columns: int,
    rows: int,
    depth: int,
    keywords: int,
    policy: Policy,
    tally: Int64,
) -> float:
    """C_slu + C_irc of an s-node, by messages that come in a timestamp: comparable with C_imm."""
    if len(messages.dx) == 0 or messages.rate <= 0.0:
        return 0.0
    width, height = region[2] - region[0], region[3] - region[1]
    steps = math.log2(max(2, columns * rows))
    updates = 0.0
    for entry in segment:
        passed = regions_passed(messages.dx[entry], width)
        passed += regions_passed(messages.dy[entry], height)
        updates += 2.0 * min(1.0, passed) * (depth + 1) * steps
    after = timestamps_to_rebuild(
        entries, segment, region, messages, columns, rows, policy.divergence, tally
    )
    rebuilding = 0.0
    if after < MOST_TIMESTAMPS:
        count = len(segment)
        levels = max(0.0, math.log(count / policy.leaf) / math.log(max(2, policy.fanout)))
        each = count * (steps + math.sqrt(columns * rows)) + columns * rows * keywords
        rebuilding = each * (levels + 1.0) / after
    return (updates + rebuilding) / messages.rate


@kernel_inline
def regions_passed(distance: float, length: float) -> float:
    """ζ along one dimension: how many regions of that *length* it passes in a timestamp."""
    if distance == 0.0:
        return 0.0
    return abs(distance) / length if 0.0 < length < math.inf else 1.0


@kernel_part
def timestamps_to_rebuild(
    entries: Entries,
    segment: Int32,
    region: Float64,
    messages: Messages,
    columns: int,
    rows: int,
    divergence: float,
    tally: Int64,
) -> int:
    """T_Δ by Algorithm 8: when the entries will be spread otherwise over an even grid.

    What leaves the region is counted as one more cell.
    """
    columns, rows = min(columns, 8), min(rows, 8)
    cells = columns * rows + 1
    stride = (len(segment) + FOLLOWED - 1) // FOLLOWED
    spread_after(entries, segment, stride, region, messages, columns, rows, 0, tally)
    for cell in range(cells):
        tally[cells + cell] = tally[cell]
    for time in range(1, MOST_TIMESTAMPS):
        spread_after(entries, segment, stride, region, messages, columns, rows, time, tally)
        if divergence_of(tally, cells) > divergence:
            return time
    return MOST_TIMESTAMPS


@kernel_inline
def spread_after(
    entries: Entries,
    segment: Int32,
    stride: int,
    region: Float64,
    messages: Messages,
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
    for place in range(0, len(segment), stride):
        entry = segment[place]
        box = entries.box[4 * entry : 4 * entry + 4]
        if not (-math.inf < box[0] and box[2] < math.inf):  # everywhere, or nowhere
            continue
        x = (box[0] + box[2]) / 2.0 + time * messages.dx[entry] - region[0]
        y = (box[1] + box[3]) / 2.0 + time * messages.dy[entry] - region[1]
        cell = columns * rows
        if 0.0 <= x <= columns * width and 0.0 <= y <= rows * height and width * height > 0.0:
            column = min(columns - 1, int(x / width))
            row = min(rows - 1, int(y / height))
            cell = row * columns + column
        tally[cell] += 1


@kernel_inline
def divergence_of(tally: Int64, cells: int) -> float:
    """D_KL of what stands in *tally* behind *cells*, from what stands there before; smoothed."""
    total = before = 0.0
    for cell in range(cells):
        total += tally[cell] + 0.5
        before += tally[cells + cell] + 0.5
    found = 0.0
    for cell in range(cells):
        old = (tally[cells + cell] + 0.5) / before
        found += old * math.log(old * total / (tally[cell] + 0.5))
    return found
