"""Room for a curve, and what must be true of it: AssertionErrors where it is not."""

from __future__ import annotations

from stentor.encoding.columns import Float64
from stentor.index.arena import extended
from stentor_lab.baselines.curve import BLOCK, BLOCKS, ORDERED, Curve
from stentor_lab.baselines.curve_keys import key_words, place_on_curve


def roomier_curve(curve: Curve) -> Curve:
    """*curve* with room for some more blocks."""
    words = int(curve.shape[2])
    blocks = len(extended(curve.filled, int(curve.used[BLOCKS]) + 4))
    return curve._replace(
        keys=extended(curve.keys, blocks * BLOCK * words),
        entries=extended(curve.entries, blocks * BLOCK),
        filled=extended(curve.filled, blocks),
        order=extended(curve.order, blocks),
    )


def check_curve(curve: Curve, points: Float64) -> list[int]:
    """The entries of *curve* in order; keys are sorted and are those of their *points*."""
    dims, bits, words = curve.shape.tolist()
    found: list[int] = []
    last: list[int] = []
    for block in curve.order[: curve.used[ORDERED]].tolist():
        count = int(curve.filled[block])
        assert 1 <= count <= BLOCK
        for position in range(block * BLOCK, block * BLOCK + count):
            entry = int(curve.entries[position])
            key = curve.keys[position * words : (position + 1) * words].tolist()
            assert last <= key, "keys out of order"
            last = key
            cell = [
                cell_of(point, low, scale, bits)
                for point, low, scale in zip(
                    points[entry].tolist(), curve.low.tolist(), curve.scale.tolist(), strict=True
                )
            ]
            assert key == key_words(place_on_curve(cell, bits), dims * bits, words)
            assert curve.key_of[entry * words : (entry + 1) * words].tolist() == key
            found.append(entry)
    return found


def cell_of(value: float, low: float, scale: float, bits: int) -> int:
    """The cell of *value*: monotone, and clamped at both ends."""
    scaled = (value - low) * scale
    if not scaled > 0.0:
        return 0
    most = (1 << bits) - 1
    return most if scaled >= most else int(scaled)
