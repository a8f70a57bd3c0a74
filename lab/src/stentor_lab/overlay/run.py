"""A workload on an overlay: what it led to, in all and on each link."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from stentor.broker import Overlay
from stentor.broker.messages import KINDS
from stentor.cli.screen import Advance
from stentor.errors import StentorError
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor_lab.overlay.file import Described
from stentor_lab.overlay.workload import Coming

#: Events that come together: what they lead to does not depend on it.
EVENTS: Final = 500
#: Reasons that are shown.
REASONS: Final = 10


class Outcome(NamedTuple):
    """The overlay after its workload, what came of it, and why records did not count."""

    overlay: Overlay
    counts: dict[str, int]
    reasons: list[str]  # the first of them


def run(described: Described, advance: Advance) -> Outcome:
    """What came of the workload; each subscriber and each event comes to a random broker."""
    overlay = described.overlay()
    overlay.run()
    overlay.carried.clear()
    choose = random.Random(described.workload.cubes.seed)
    names = list(overlay.brokers)
    homes: dict[str, str] = {}
    kinds = ("subscriptions", "events", "deliveries", "rejected", "refused")
    counts = dict.fromkeys(kinds, 0)
    reasons: list[str] = []

    def reject(reason: str) -> None:
        counts["rejected"] += 1
        reasons.append(f"rejected: {reason}")

    workload = described.workload
    for burst in bursts(workload.records(reject), workload.burst):
        at: dict[str, list[Record]] = {}
        for record, _ in burst:
            at.setdefault(_place(record, homes, choose.choice(names)), []).append(record)
            counts["subscriptions"] += isinstance(record, Subscribe)
            counts["events"] += isinstance(record, Publish)
        for broker, records in at.items():
            for answer in overlay.send(broker, records):
                if isinstance(answer, StentorError):
                    counts["refused"] += 1
                    reasons.append(f"refused: {answer}")
        del reasons[REASONS:]
        counts["deliveries"] += sum(one.added for one in overlay.run())
        advance(burst[-1].done)
    counts["for nothing"] = overlay.unwanted
    return Outcome(overlay, counts, reasons)


def bursts(workload: Iterable[Coming], changes: int) -> Iterator[list[Coming]]:
    """The *workload* in pieces that may come at once.

    Events that do not stay live go their ways by themselves, at one time many at once. Of two
    subscriptions that cross on their way neither silences the other, so only so many *changes* of
    subscriptions come at once as the user wishes; and a live event comes alone.
    """
    burst: list[Coming] = []
    for coming in workload:
        if burst and not _may_follow(burst, coming.record, changes):
            yield burst
            burst = []
        burst.append(coming)
    if burst:
        yield burst


def _may_follow(burst: list[Coming], record: Record, changes: int) -> bool:
    first = burst[0].record
    if record.time not in (None, first.time):
        return False
    if isinstance(first, Publish) and isinstance(record, Publish):
        is_plain = first.event.until is None and record.event.until is None
        return is_plain and len(burst) < EVENTS
    are_changes = not isinstance(first, Publish) and not isinstance(record, Publish)
    return are_changes and len(burst) < changes


def _place(record: Record, homes: dict[str, str], drawn: str) -> str:
    """The broker that *record* comes to: a subscriber stays where it came first."""
    match record:
        case Subscribe(subscription):
            return homes.setdefault(subscription.id, drawn)
        case Move(id) | Unsubscribe(id):
            return homes.get(id, drawn)
    return drawn


def carried(overlay: Overlay) -> list[dict[str, Any]]:
    """What each link carried, in both directions: one row each."""
    rows = []
    rare = {"update", "withdraw", "gone"} - {one.kind for one in overlay.carried}
    shown = {*KINDS.values()} - {"greeting"} - rare
    for pair in overlay.links:
        for sender, receiver in (pair, pair[::-1]):
            counts = Counter(
                {
                    one.kind: count
                    for one, count in overlay.carried.items()
                    if (one.sender, one.receiver) == (sender, receiver)
                }
            )
            kinds = {kind: counts[kind] for kind in KINDS.values() if kind in shown}
            rows.append({"from": sender, "to": receiver, **kinds})
    return rows


def tree_count(overlay: Overlay) -> int:
    """How many trees the brokers form; nothing passes from one to another."""
    return len({frozenset(overlay.reach(name)) for name in overlay.brokers})


def held(overlay: Overlay, described: Described) -> list[dict[str, Any]]:
    """What each broker holds: one row each."""
    rows = []
    for name, broker in overlay.brokers.items():
        stats = broker.stats()
        stats = {("merged ranges" if of == "ranges" else of): stats[of] for of in stats}
        rows.append({"broker": name, "policy": described.policies[name], **stats})
    return rows
