"""Tables 2 and 3 of MICS: seven dimensions of which three are kept.

Table 2 cannot come from the setting that the paper describes. With boxes of 4 of 256 intervals in
all seven dimensions a publication that is in one in three of them is in it in the other four with a
probability of (4/256)^4, 6 in 10^8: whatever is forwarded is forwarded in vain. What the table
prints fits boxes of 1 to 4 intervals, which explains what is forwarded, and subscriptions that ask
for few of the other four dimensions, which explains how little of it is in vain. Both settings are
shown.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import numpy as np

from stentor.encoding.columns import UInt64
from stentor.encoding.hilbert import HilbertCurve
from stentor.index.mics.postings import Postings
from stentor_lab.bench.mics_boxes import (
    BITS,
    EXPONENT,
    LAST,
    LAWS,
    PUBLICATIONS,
    UNIFORM,
    ZIPF,
    boxes,
    drawn,
    filled,
    held,
    mixed_boxes,
    ranges_of,
)
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.workloads.distributions import random_of

ALL, KEPT = 7, 3
SIDE: Final = 4
#: The paper has 20,000 to 150,000 subscriptions: these shares of 100,000.
SHARES: Final = (0.2, 0.6, 1.0, 1.5)


class Printed(NamedTuple):
    """What the paper prints of a law, at each of those sizes."""

    forwarded: tuple[int, ...]  # of 10,000 publications
    in_vain: tuple[float, ...]  # in per cent of those
    evaluated: tuple[int, ...]  # Table 3


PAPER: Final = {
    ZIPF: Printed((5217, 6472, 7040, 7502), (5.54, 3.71, 3.15, 2.57), (64, 232, 414, 600)),
    UNIFORM: Printed((209, 583, 858, 1325), (42.11, 42.37, 36.95, 38.19), (1, 1, 1, 1)),
}
#: How often a fitted subscription asks for one of the dimensions that are left out.
ASKED: Final = {UNIFORM: 1 / 8, ZIPF: 1 / 20}
#: New subscriptions whose candidates are counted.
FRESH: Final = 500


def tables(options: BenchOptions, size: int) -> tuple[Table, ...]:
    """Table 2 as described and as fitted, and Table 3, for shares of *size* subscriptions."""
    return (
        _false_positives(False, options, size),
        _false_positives(True, options, size),
        _candidates(options, size),
    )


def fitted(law: str, count: int, seed: int) -> tuple[UInt64, UInt64]:
    """Boxes of 1 to 4 intervals a side; most reach over all of a dimension that is left out."""
    low, high = mixed_boxes(law, count, ALL, SIDE, seed)
    is_asked = random_of(seed, count).random(low.shape) < ASKED[law]
    is_asked[:, :KEPT] = True
    return np.where(is_asked, low, np.uint64(0)), np.where(is_asked, high, np.uint64(LAST))


def _false_positives(is_fitted: bool, options: BenchOptions, size: int) -> Table:
    setting = "fitted to what is printed" if is_fitted else "as described"
    title = f"Table 2: projection of seven dimensions onto three, {setting}"
    cases = []
    for law in LAWS:
        asked = drawn(law, PUBLICATIONS, ALL, options.seed + 1)
        numbers = HilbertCurve(KEPT, BITS).numbers(asked[:, :KEPT])
        for position, share in enumerate(SHARES):
            count = max(1, int(share * size))
            options.progress(f"{title}: {law}, {count:,}")
            if is_fitted:
                low, high = fitted(law, count, options.seed)
            else:
                low, high = boxes(law, count, ALL, SIDE, options.seed)
            store = filled(ranges_of(low[:, :KEPT], high[:, :KEPT]))
            forwarded = np.flatnonzero(store.holds(numbers))
            wanted = held(low, high, asked[forwarded], asked[forwarded])
            figures = {
                "forwarded": len(forwarded),
                "paper": PAPER[law].forwarded[position],
                "in vain, %": 100.0 * (1.0 - wanted.sum() / max(1, len(forwarded))),
                "paper, %": PAPER[law].in_vain[position],
            }
            sample = stopwatch(partial(store.holds, numbers))
            cases.append(Case(f"{law}, {count:,}", sample, PUBLICATIONS, figures=figures))
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = _facts(options)
    if is_fitted:
        facts["sizes"] = f"1 to {SIDE}, all as often"
        facts["of the other four a subscription asks for"] = ", ".join(
            f"{share:.1%} ({law})" for law, share in ASKED.items()
        )
    else:
        facts["sizes"] = f"{SIDE} in all dimensions"
    return Table(title, facts, "publication", Unit.MICROSECONDS, rows, compared=False)


def _candidates(options: BenchOptions, size: int) -> Table:
    """Table 3: with how many others a new subscription is to be compared."""
    title = "Table 3: subscriptions to evaluate, three of seven dimensions indexed"
    cases = []
    for law in LAWS:
        fresh = ranges_of(*boxes(law, FRESH, KEPT, SIDE, options.seed + 2))
        for position, share in enumerate(SHARES):
            count = max(1, int(share * size))
            options.progress(f"{title}: {law}, {count:,}")
            postings = Postings()
            postings.add(np.arange(count), ranges_of(*boxes(law, count, KEPT, SIDE, options.seed)))
            met = np.unique(np.stack(postings.owners_of(fresh)), axis=1)
            figures = {
                "to evaluate": met.shape[1] / FRESH,
                "paper": PAPER[law].evaluated[position],
            }
            sample = stopwatch(partial(postings.owners_of, fresh))
            cases.append(Case(f"{law}, {count:,}", sample, FRESH, figures=figures))
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {**_facts(options), "sizes": SIDE, "new subscriptions": FRESH}
    return Table(title, facts, "subscription", Unit.MICROSECONDS, rows, compared=False)


def _facts(options: BenchOptions) -> dict[str, object]:
    return {
        "publications": PUBLICATIONS,
        "paper": "of 20,000, 60,000, 100,000 and 150,000",
        "Zipf's exponent": EXPONENT,
        "intervals": 1 << BITS,
        "seed": options.seed,
    }
