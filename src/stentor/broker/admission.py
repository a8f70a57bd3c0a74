"""What a client's record must be, so that it can be kept and handed on."""

from __future__ import annotations

from stentor.errors import StentorError
from stentor.model import Point, Schema
from stentor.model.record import Move, Publish, Record, Subscribe
from stentor.wire.events import event_from_dict, event_to_dict
from stentor.wire.fields import id_of, position_of


def mistake_in(record: Record, schema: Schema) -> StentorError | None:
    """Why *record* could not be read back from a store; None where it could.

    What was read from JSON always can. What was made by hand may have an id or a place that is
    none.
    """
    try:
        match record:
            case Publish(event):
                id_of(event.id)
                if event.until is not None:
                    event_from_dict(event_to_dict(event), schema.unteachable())
            case Subscribe(subscription):
                id_of(subscription.id)
                _check_place(subscription.at, schema)
            case Move(_, at):
                _check_place(at, schema)
    except StentorError as error:
        return error
    return None


def _check_place(at: Point | None, schema: Schema) -> None:
    if at is not None:
        position_of([at.x, at.y], plane=schema.plane)
