"""Attributes that must be missing or present."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoValue:
    """The attribute must be missing."""

    never: bool = False


@dataclass(frozen=True, slots=True)
class AnyValue:
    """The attribute must be there; nothing more is known of it, not even its kind."""

    never: bool = False
