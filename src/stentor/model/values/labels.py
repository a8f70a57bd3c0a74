"""What a label is: a name and a value, both short texts, by which subscriptions are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model.values.string import describe, read_id

#: So many labels a subscription, or what an event is meant for, may have.
MOST_LABELS: Final = 32
#: Of a subscription that has every label: what a broker's neighbour wants. No user can say it.
EVERY_LABEL: Final[Mapping[str, str]] = {"": ""}


def read_labels(raw: Any, field: str = "labels") -> dict[str, str]:
    """The labels that *raw* describes: an object of texts; none where it is missing.

    >>> read_labels({"tenant": "acme", "plan": 3})
    {'tenant': 'acme', 'plan': '3'}
    """
    if raw is None:
        return {}
    if isinstance(raw, list):  # a map, as Arrow gives it
        try:
            raw = dict(raw)
        except (TypeError, ValueError):
            raise RecordError("expected names and values", field=field) from None
    if not isinstance(raw, Mapping):
        raise RecordError(
            f'expected labels like {{"tenant": "acme"}}, got {describe(raw)}', field=field
        )
    if len(raw) > MOST_LABELS:
        raise RecordError(f"{len(raw)} labels; the limit is {MOST_LABELS}", field=field)
    found: dict[str, str] = {}
    for name, value in raw.items():
        if value is None:
            continue  # a column of a struct that this row does not have
        try:
            found[read_id(name)] = read_id(value)
        except RecordError:
            raise RecordError(
                f"a label is a name and a value, both short texts, got {describe(name)}: "
                f"{describe(value)}",
                field=field,
            ) from None
    return found


def read_owner(raw: Any) -> str | None:
    """The owner that *raw* names: a text or an integer; None where it is missing."""
    if raw is None:
        return None
    try:
        return read_id(raw)
    except RecordError:
        raise RecordError(
            f"expected who owns the subscription, a text, got {describe(raw)}", field="owner"
        ) from None
