"""How large an expression may be: checked before anything is built or recursed into."""

from __future__ import annotations

from dataclasses import dataclass, fields

from stentor.errors import ExpressionError, LimitError, SettingsError

#: Comparing, hashing or printing a tree takes a few of Python's 1,000 stack frames per level.
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings that bound what one expression can cost; the defaults are safe for strangers.

    >>> Limits(depth=0)
    Traceback (most recent call last):
    stentor.errors.SettingsError: the limit 'depth' is 0; expected a whole number from 1 to 100
    """

    bytes: int = 65_536
    """Of the text, as UTF-8."""
    depth: int = 100
    """Of parentheses and NOTs inside one another, and of the tree."""
    predicates: int = 1_000
    """In one expression."""
    list_length: int = 10_000
    """Of an IN list."""
    alternatives: int = 1_024
    """Of the normal form."""
    expanded_predicates: int = 20_000
    """Of all alternatives of the normal form together."""
    polygon_points: int = 10_000
    """Of one polygon, all its rings together."""
    pattern_length: int = 1_024
    """Of a LIKE pattern, in characters."""
    pattern_steps: int = 2_048
    """Of all LIKEs of the normal form, for each character of a text (`pattern.steps_of`)."""
    pattern_work: int = 500_000
    """Steps of building the tables of all its ILIKEs and RLIKEs: less than half a second."""
    pattern_bytes: int = 4_000_000
    """Of these tables, in all alternatives of the normal form."""
    words: int = 1_000
    """Of one has_all or has_any."""

    @property
    def are_of_our_own(self) -> bool:
        """Whether these are `ANY_SIZE`."""
        return self == ANY_SIZE

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            most = _DEEPEST if field.name == "depth" else None
            if type(value) is not int or value < 1 or (most is not None and value > most):
                expected = f"from 1 to {most}" if most else "of at least 1"
                raise SettingsError(
                    f"the limit {field.name!r} is {value!r}; expected a whole number {expected}"
                )


#: For texts of our own: they were taken in when they came, perhaps by an earlier version, so
#: neither limits nor rules about attributes are checked again.
ANY_SIZE = Limits(**{field.name: 2**40 for field in fields(Limits)} | {"depth": _DEEPEST})
#: What `parse` allows where nothing else is said.
DEFAULT_LIMITS = Limits()


def check_text(text: str, limit: int) -> None:
    """Refuse what is not a text of at most *limit* bytes as UTF-8."""
    if not isinstance(text, str):
        raise ExpressionError(f"an expression is a text, got {type(text).__name__}")
    size = len(text)
    if size <= limit and not text.isascii():
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise ExpressionError(
                "half of a surrogate pair has no UTF-8 form",
                text=text,
                start=error.start,
                stop=error.end,
            ) from None
    if size > limit:
        raise LimitError(f"the expression has {size:,} bytes or more; the limit is {limit:,}")
