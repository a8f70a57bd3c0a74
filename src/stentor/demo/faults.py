"""Records that are wrong, each differently: what is to be rejected, and why."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

Record = dict[str, Any]


def fault(random: Random, number: int, time: str, location: list[float]) -> Record:
    """A record that cannot be used, whatever came before it from the same afternoon."""
    return random.choice(FAULTS)(f"bad-{number}", time, location)


def _broken_expression(id: str, time: str, location: list[float]) -> Record:
    return _subscribe(id, time, location, "category = 'books' AND price <")


def _unknown_function(id: str, time: str, location: list[float]) -> Record:
    return _subscribe(id, time, location, "near(loc, 500)")


def _number_compared_with_text(id: str, time: str, location: list[float]) -> Record:
    return _subscribe(id, time, location, "price = 'cheap'")


def _here_without_position(id: str, time: str, location: list[float]) -> Record:
    record = _subscribe(id, time, location, "ST_DWithin(loc, here(), 800)")
    del record["at"]
    return record


def _event_without_id(id: str, time: str, location: list[float]) -> Record:
    return {"op": "publish", "time": time, "kind": "coupon", "price": 4, "loc": location}


def _impossible_location(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, [location[0], location[1] + 100.0], price=12)


def _text_for_a_number(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, price="ask inside")


def _nested_object(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, shop={"name": "Heron Books", "owner": "E. Dahl"})


def _number_too_large(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, price=2**53 + 1)


def _no_instant(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, until="closing time")


def _over_before_it_came(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, until="2026-05-16T10:00:00+02:00")


def _unknown_op(id: str, time: str, location: list[float]) -> Record:
    return {"op": "shout", "id": id, "time": time, "text": "Fresh mussels!", "loc": location}


def _move_to_nowhere(id: str, time: str, location: list[float]) -> Record:
    return {"op": "move", "id": id, "time": time}


def _unknown_person(id: str, time: str, location: list[float]) -> Record:
    return {"op": "move", "id": "nobody", "time": time, "at": location}


def _subscribe(id: str, time: str, location: list[float], expression: str) -> Record:
    return {"op": "subscribe", "id": id, "time": time, "expression": expression, "at": location}


def _publish(id: str, time: str, location: list[float], **attributes: Any) -> Record:
    return {"op": "publish", "id": id, "time": time, "kind": "coupon", "loc": location} | attributes


Fault = Callable[[str, str, list[float]], Record]
FAULTS: Final[tuple[Fault, ...]] = (
    _broken_expression,
    _unknown_function,
    _number_compared_with_text,
    _here_without_position,
    _event_without_id,
    _impossible_location,
    _text_for_a_number,
    _nested_object,
    _number_too_large,
    _no_instant,
    _over_before_it_came,
    _unknown_op,
    _move_to_nowhere,
    _unknown_person,
)
