"""JSON text ↔ plain Python values, strictly: RFC 8259, UTF-8, no NaN, no key twice.

Integers stay exact, so that one which a double cannot hold is refused later by name.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from stentor.errors import RecordError
from stentor.model.values.string import not_utf8_error

#: Deeper than any record; whatever walks a value that was read is safe to recurse.
MOST_DEPTH: Final = 64

_DECODER: Final = msgspec.json.Decoder()


def from_json(data: bytes) -> Any:
    """The value of the JSON text *data*; a RecordError says what is wrong with it, and where.

    >>> from_json(b'{"price": 1, "price": 2}')
    Traceback (most recent call last):
    stentor.errors.RecordError: the key 'price' stands twice in one object; keep one of them
    """
    try:
        value = _DECODER.decode(data)
        if _may_repeat_a_key(data, value):
            json.loads(data, object_pairs_hook=_object_of_distinct_keys)
    except UnicodeDecodeError as error:
        raise not_utf8_error(error) from None
    except RecursionError:
        raise _too_deep() from None
    except msgspec.DecodeError as error:
        raise RecordError(f"not JSON: {_spelled(str(error))}") from None
    return value


def to_json(raw: Any) -> str:
    """*raw* as JSON text on one line; an infinity, which JSON cannot write, is refused.

    >>> to_json({"id": "e1", "price": 299})
    '{"id":"e1","price":299}'
    """
    try:
        return json.dumps(raw, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise RecordError(
            "infinities have no form in JSON; leave the attribute out, or write Parquet"
        ) from None


def _may_repeat_a_key(data: bytes, value: Any) -> bool:
    """Whether *data* has more colons than the keys and strings of *value* account for.

    The decoder keeps the last of two equal keys in silence. Each member has one colon, each other
    colon is in a string: where the counts agree nothing was dropped. An escaped colon, which
    nobody writes, would upset them, so it is looked at closely.

    Cost: a tenth of reading the record; the slow, exact reader runs almost only to report an error.
    """
    if b"\\u003a" in data or b"\\u003A" in data:
        return True
    return data.count(b":") != _colons(value, MOST_DEPTH)


def _colons(value: Any, depth: int) -> int:
    """The colons of all members, keys and strings; refused where *value* is deeper than *depth*."""
    count = 0
    inner = value
    if type(value) is dict:
        count = len(value) + "".join(value).count(":")
        inner = value.values()
    elif type(value) is not list:
        inner = (value,)
    for one in inner:
        kind = type(one)
        if kind is str:
            count += one.count(":")
        elif kind is dict or kind is list:
            if depth == 0:
                raise _too_deep()
            count += _colons(one, depth - 1)
    return count


def _too_deep() -> RecordError:
    return RecordError(f"the JSON text is nested more than {MOST_DEPTH} deep; flatten it")


def _object_of_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RecordError(f"the key {key[:100]!r} stands twice in one object; keep one of them")
        found[key] = value
    return found


def _spelled(message: str) -> str:
    """The decoder's *message* without what every one of them begins with."""
    return message.removeprefix("JSON is malformed: ")
