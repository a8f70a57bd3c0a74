"""What a string is: it has a UTF-8 form; ids, attributes' names; raw values in messages."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Final

from stentor.errors import RecordError

#: Of an id or of an attribute's name, as UTF-8.
MOST_ID_BYTES: Final = 512


def read_string(raw: str, field: str | None = None) -> str:
    """*raw* itself; refused where it has no UTF-8 form (half of a surrogate pair)."""
    try:
        raw.encode()
    except UnicodeEncodeError as error:
        raise RecordError(
            f"the character at position {error.start} is half of a surrogate pair, "
            "which has no UTF-8 form",
            field=field,
        ) from None
    return raw


def not_utf8_error(error: UnicodeDecodeError, field: str | None = None) -> RecordError:
    """What is said of bytes that are no text."""
    return RecordError(
        f"not UTF-8: the byte {error.object[error.start]:#04x} fits in no character; "
        "save the text as UTF-8",
        field=field,
    )


def check_string_bytes(length: int, most: int, field: str) -> None:
    """Refuse a string of *length* bytes where *most* are allowed."""
    if length > most:
        raise RecordError(f"the string has {length:,} bytes; the limit is {most:,}", field=field)


def check_record_bytes(length: int, most: int) -> None:
    """Refuse an event whose strings have *length* bytes together where *most* are allowed."""
    if length > most:
        raise RecordError(f"the event's strings have {length:,} bytes; the limit is {most:,}")


def read_id(raw: Any, field: str = "id") -> str:
    """The id of *raw*: a string of 1 to 512 bytes; an integer is its decimal text.

    >>> read_id(7)
    '7'
    """
    if not isinstance(raw, bool) and isinstance(raw, Integral) and hasattr(raw, "__index__"):
        raw = str(int(raw)) if int(raw).bit_length() < 1024 else raw
    if raw is None:
        raise RecordError("every record needs one: a string or an integer", field=field)
    if not isinstance(raw, str):
        raise RecordError(
            f"expected a string or an integer, got {describe(raw)}",
            field=field,
        )
    if not 0 < utf8_length(read_string(raw, field)) <= MOST_ID_BYTES:
        raise RecordError(
            f"expected 1 to {MOST_ID_BYTES} bytes, got {utf8_length(raw):,}; "
            "shorten it, for example to a hash",
            field=field,
        )
    return raw


def read_attribute_name(raw: Any) -> str:
    """*raw* as an attribute's name: a string of 1 to 512 bytes."""
    if not isinstance(raw, str):
        raise RecordError(f"an attribute's name is a string, got {describe(raw)}")
    if not 0 < utf8_length(read_string(raw, "an attribute's name")) <= MOST_ID_BYTES:
        raise RecordError(
            f"an attribute's name has 1 to {MOST_ID_BYTES} bytes, "
            f"got {utf8_length(raw):,}: {describe(raw)}"
        )
    return raw


def utf8_length(value: str) -> int:
    """The bytes of *value* as UTF-8."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def describe(raw: Any, width: int = 60) -> str:
    """*raw* for a message, and of what type it is; cut, and never deep inside."""
    kind = type(raw).__name__
    if isinstance(raw, str):
        return repr(raw if len(raw) <= width else raw[:width] + "…")
    if raw is None or isinstance(raw, (bool, float)):
        return str(raw)
    if isinstance(raw, int):
        return str(raw) if raw.bit_length() <= 256 else "a huge integer"
    return f"an object ({kind})" if isinstance(raw, Mapping) else f"a value of type {kind}"
