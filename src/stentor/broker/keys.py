"""The ids under which one engine holds what clients and neighbours call by names of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from stentor.model.record import Move, Record, Subscribe, Unsubscribe

#: Where a message comes from that no neighbour sent.
CLIENT: Final = ""
#: Stands between where a subscription came from and its name.
BETWEEN: Final = "|"


def key_of(source: str, name: str) -> str:
    """The engine's id of what *source* calls *name*."""
    return f"{source}{BETWEEN}{name}"


def source_and_name(key: str) -> tuple[str, str]:
    """Who calls what so."""
    source, _, name = key.partition(BETWEEN)
    return source, name


def filed(source: str, record: Record) -> Record:
    """*record* as the engine takes it: what *source* calls by a name goes by its key."""
    match record:
        case Subscribe(subscription):
            return replace(
                record, subscription=replace(subscription, id=key_of(source, subscription.id))
            )
        case Unsubscribe(name) | Move(name):
            return replace(record, id=key_of(source, name))
    return record
