"""What is refused, and how that is said: a status, a kind and a sentence."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from stentor.errors import (
    AlreadyOverError,
    DuplicateEventError,
    ExpressionError,
    RecordError,
    StentorError,
    StoreError,
    UnknownIdError,
)

_STATUS: Final[dict[type[StentorError], int]] = {
    UnknownIdError: 404,
    DuplicateEventError: 409,
    AlreadyOverError: 409,
    StoreError: 503,
}
_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
#: How messages name what belongs to an owner.
_OWNED: Final = re.compile(r"(subscription|event) '([A-Za-z0-9._-]+)/([^']*)'")
_ID: Final = re.compile(r"'([A-Za-z0-9._-]+)/([^']*)'")


class RefusedError(StentorError):
    """A request that is refused for a reason of the service's own."""

    def __init__(self, status: int, kind: str, message: str, *, retry_after: int = 0) -> None:
        self.status, self.kind, self.retry_after = status, kind, retry_after
        super().__init__(message)


class ErrorAnswer(msgspec.Struct, frozen=True):
    """What is wrong, as clients are told."""

    kind: str
    message: str
    field: str | None = None
    start: int | None = None
    stop: int | None = None
    hint: str | None = None


def status_of(error: StentorError) -> int:
    """The status that an HTTP answer has."""
    if isinstance(error, RefusedError):
        return error.status
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 400)


def error_answer(error: StentorError, owner: str = "") -> ErrorAnswer:
    """What *owner* is told of *error*: its own ids as it knows them, and nobody else's."""
    message = _without_owners(str(error), owner)
    if isinstance(error, RefusedError):
        return ErrorAnswer(error.kind, message)
    kind = _WORD.sub("_", type(error).__name__.removesuffix("Error")).lower()
    if isinstance(error, ExpressionError):
        return ErrorAnswer(kind, message, "expression", error.start, error.stop, error.hint)
    return ErrorAnswer(kind, message, error.field if isinstance(error, RecordError) else None)


def _without_owners(message: str, owner: str) -> str:
    def response(found: re.Match[str]) -> str:
        is_own = found[2] == owner
        return f"{found[1]} {found[3]!r}" if is_own else f"another owner's {found[1]}"

    message = _OWNED.sub(response, message)
    return _ID.sub(lambda found: repr(found[2]) if found[1] == owner else found[0], message)


def not_found(what: str, id: str) -> RefusedError:
    """The refusal of an id that the asker's owner does not have."""
    return RefusedError(404, "not_found", f"there is no {what} {id[:100]!r}")


def error_json(error: StentorError, owner: str = "") -> dict[str, Any]:
    """The body of an HTTP answer."""
    return {"error": error_answer(error, owner)}
