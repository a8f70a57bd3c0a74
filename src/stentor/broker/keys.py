"""The ids under which one engine holds what clients and neighbours call by names of their own."""

from __future__ import annotations

from typing import Final

from stentor.model import Subscription
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
        case Subscribe(Subscription(name, expression, at, until), time):
            return Subscribe(Subscription(key_of(source, name), expression, at, until), time)
        case Unsubscribe(name, time):
            return Unsubscribe(key_of(source, name), time)
        case Move(name, at, time):
            return Move(key_of(source, name), at, time)
    return record
