"""The space that the ranges of an overlay are about: described in its file, or chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from stentor.broker import Dimension, Space
from stentor.errors import SettingsError, StentorError
from stentor.index.mics.settings import EQUAL, VARIABLE
from stentor.index.mics.space import AXES
from stentor.model import Kind, Schema
from stentor.pipeline.config.reader import Count, Text, TomlSection, shown
from stentor_lab.overlay.workload import Workload

BITS: Final = 8
MOST: Final = 3


@dataclass(frozen=True)
class SpaceOf:
    """What a file says of the space: its dimensions, or how to choose them."""

    given: Space | None
    bits: int
    most: int  # dimensions
    cells: str

    def made(self, workload: Workload) -> Space:
        """The space: as given, or that of the most selective attributes of the subscriptions."""
        if self.given is not None:
            return self.given
        columns, schema = workload.sample()
        try:
            return Space.chosen(
                columns, schema, dimensions=self.most, bits=self.bits, cells=self.cells
            )
        except SettingsError as error:
            raise SettingsError(f"[space] is needed: {error}") from None


def read_space(section: TomlSection) -> SpaceOf:
    """What the section `[space]` says."""
    bits, most = section.get("bits", Count) or BITS, section.get("most", Count) or MOST
    cells = section.one_of("cells", (EQUAL, VARIABLE)) or EQUAL
    value: Any = section.any("dimensions")
    section.close()
    given = None
    if isinstance(value, list):
        for key in ("most", "cells"):
            if section.has(key):
                section.add_mistake(
                    key, "only a space that is chosen has it, and `dimensions` are given"
                )
        given = _space(section, value, bits)
    elif value is not None:
        section.add_mistake("dimensions", f"expected a list of tables, got {shown(value)}")
    return SpaceOf(given, bits, most, cells)


def _space(section: TomlSection, tables: list[Any], bits: int) -> Space | None:
    found = []
    for number, table in enumerate(tables, start=1):
        inner = section.at(f"{section.location}, dimension {number}", table)
        attribute, axis = inner.get("attribute", Text), inner.one_of("axis", AXES) or "value"
        inner.require("attribute", "the name of an attribute")
        low, high = _number(inner, "low"), _number(inner, "high")
        inner.close()
        if attribute is not None and low is not None and high is not None:
            try:
                found.append(Dimension(attribute, low, high, axis))
            except StentorError as error:
                inner.add_mistake(None, str(error))
    if len(found) < len(tables):
        return None
    try:
        return Space(tuple(found), bits)
    except StentorError as error:
        section.add_mistake(None, str(error))
        return None


def _number(section: TomlSection, key: str) -> float | None:
    value = section.any(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    section.add_mistake(key, f"expected a number, got {shown(value)}")
    return None


def shown_space(space: Space, schema: Schema) -> str:
    """*space* for people: its dimensions, how finely they are cut, and what cannot be meant.

    >>> space = Space((Dimension("price", 0, 100), Dimension("loc", -180, 180)), bits=8)
    >>> shown_space(space, Schema.declare({"loc": "point"}))
    'price 0 to 100 (no record has it), loc -180 to 180 (a place needs axis x or y); 8 bits each'
    """
    return f"{', '.join(_shown(one, schema) for one in space.dimensions)}; {space.bits} bits each"


def _shown(dimension: Dimension, schema: Schema) -> str:
    name, axis = dimension.attribute, dimension.axis
    kind = schema.kind(name)
    if kind is Kind.STRING:
        return f"{name} by its first letters"
    shown = name if axis == "value" else f"{name}.{axis}"
    doubt = ""
    if name not in schema:
        doubt = " (no record has it)"
    elif kind is Kind.POINT and axis == "value":
        doubt = " (a place needs axis x or y)"
    return f"{shown} {dimension.low:g} to {dimension.high:g}{doubt}"
