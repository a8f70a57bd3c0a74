"""Every error Stentor raises: one root, each also a built-in kind, each carrying its data.

A message says what was got, what was expected and what to try. Exit codes and table columns are
mapped from these at the edges only.
"""

from __future__ import annotations

from typing import Any


class StentorError(Exception):
    """The root of everything Stentor raises on purpose; it survives `pickle` and `copy`."""

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception's own way calls the class with `args` alone, which is not how all are made.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[StentorError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """The error of this *kind* whose `__init__` left *args* and *state*."""
    error = kind.__new__(kind, *args)
    error.args = args  # an OSError with an `__init__` of its own has none yet
    error.__dict__.update(state)
    return error


class ExpressionError(StentorError, ValueError):
    """An expression that cannot be used; it underlines the place in the text.

    >>> print(ExpressionError("expected a value", text="price <", start=7, stop=8))
    expected a value
        price <
               ^
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        start: int | None = None,
        stop: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.text = text
        self.start = start
        self.stop = stop
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        lines = [self.message]
        if self.start is not None:
            lines += _underlined(self.text, self.start, self.stop or self.start + 1)
        if self.hint:
            lines.append(f"    {self.hint}")
        return "\n".join(lines)


def _underlined(text: str, start: int, stop: int, width: int = 72) -> list[str]:
    """The line of *text* that holds *start*, cut to *width* around it, and the carets below."""
    line_start = text.rfind("\n", 0, start) + 1
    line_stop = text.find("\n", start)
    line_stop = len(text) if line_stop < 0 else line_stop
    window_start = max(line_start, start - width // 2)
    window_stop = min(line_stop, window_start + width)
    before = "…" if window_start > line_start else ""
    after = "…" if window_stop < line_stop else ""
    carets = max(1, min(stop, window_stop) - start)
    shown = "".join(c if c.isprintable() else " " for c in text[window_start:window_stop])
    return [
        f"    {before}{shown}{after}",
        "    " + " " * (len(before) + start - window_start) + "^" * carets,
    ]


class ExpressionSyntaxError(ExpressionError):
    """Text that is not an expression of the language."""


class UnknownAttributeError(ExpressionError, LookupError):
    """An attribute that the declared schema does not have."""


class UnknownFunctionError(ExpressionError, LookupError):
    """A function that the language does not have."""


class TypeConflictError(ExpressionError, TypeError):
    """One name used with two types; the message names both uses."""


class LimitError(ExpressionError):
    """An expression beyond a limit (bytes, depth, predicates, alternatives, …)."""


class RecordError(StentorError, ValueError):
    """A record (event or subscription change) that cannot be used; *field* says where."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        self.field = field
        super().__init__(f"{field}: {message}" if field else message)


class UnknownIdError(StentorError, KeyError):
    """An id that names no live subscription or event."""

    def __init__(self, message: str, *, id: str) -> None:
        self.id = id
        super().__init__(message)

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0])


class DuplicateEventError(RecordError):
    """An event published under the id of an event that is still live."""


class AlreadyOverError(RecordError):
    """An event or subscription whose `until` has been reached before it came."""


class SettingsError(StentorError, ValueError):
    """A setting outside what is allowed, or one that does not exist."""


class FolderError(StentorError, OSError):
    """A saved folder that is foreign, truncated, newer than this version, or damaged."""


class StoreError(FolderError):
    """A store that is damaged, full, open elsewhere or another's; a broker or engine without it."""


class BrokenEngineError(StentorError, RuntimeError):
    """An engine in the middle of a change that it can neither finish nor undo: it refuses all."""


class CapacityError(StentorError, OverflowError):
    """More in one set of columns than its numbers can count."""


class ReadOnlyError(StentorError, TypeError):
    """A change to an index or a table that was opened read-only."""


class JavaEndedError(StentorError, ConnectionError):
    """The Java process of a Spark session has ended under a job or a stream."""


class ServiceError(StentorError, ConnectionError):
    """What a service has refused, or that it does not answer; *kind* is the service's word."""

    def __init__(self, message: str, *, kind: str) -> None:
        self.kind = kind
        super().__init__(message)


class DisagreementError(StentorError, AssertionError):
    """Two ways to do the same thing that answered differently: a defect of Stentor."""


class NeverMatchesWarning(UserWarning):
    """A subscription that asks for a contradiction: no event at all can match it."""
