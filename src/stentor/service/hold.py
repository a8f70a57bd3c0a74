"""The policy "hold": an event waits outside while a client that it could reach has no room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stentor.service.outbox import ServiceStore
from stentor.service.records import Waiting
from stentor.service.refusals import RefusedError

#: Of a delivery beside its event, about.
_DELIVERY_BYTES: Final = 1_000


def held() -> RefusedError:
    """The refusal of an event while senders are held."""
    return RefusedError(503, "full", "a queue behind it is full, and senders are held")


def parts_that_fit(segment: list[Waiting], store: ServiceStore) -> Iterator[list[Waiting]]:
    """*segment* in parts that clients surely have room for; other events of it are refused.

    Let a part happen before the next one is asked for: its deliveries count. Without the policy
    there is one part.
    """
    if not store.holds_senders:
        yield segment
        return
    part: list[Waiting] = []
    left: dict[str, tuple[int, int]] = {}
    full: set[str] = set()
    for one in segment:
        reached = "" if store.shares_events else one.owner
        if not one.is_about_event:
            left[reached] = 0, 0  # it may bring live events
            full.clear()
            part.append(one)
            continue
        events, size_left = left.get(reached, (0, 0))
        size = len(one.body) + _DELIVERY_BYTES
        if reached not in full and (events < 1 or size_left < size):
            if part and reached in left:
                yield part
                part, left = [], {}
            events, size_left = store.fitting(one.owner)
            if events < 1:
                full.add(reached)
        if reached in full:
            one.answer.errors.append((one.position, held()))
            continue
        left[reached] = events - 1, size_left - size
        part.append(one)
    if part:
        yield part
