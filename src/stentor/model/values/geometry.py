"""Points as other systems write them: well-known text and well-known binary (WKT, WKB, EWKB)."""

from __future__ import annotations

import math
import re
import struct
from typing import Final

from stentor.errors import RecordError
from stentor.model.values.string import describe

# Nothing that was read is given back (`+` behind a quantifier): a text is read in linear time.
_NUMBER: Final = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
_POINT: Final = re.compile(
    rf"\s*+(?:SRID=[0-9]++;)?\s*+POINT\s*+(?:ZM|Z|M)?\s*+"
    rf"\(\s*+({_NUMBER})\s++({_NUMBER})(?:\s++{_NUMBER}){{0,2}}+\s*+\)\s*+",
    re.ASCII | re.IGNORECASE,
)
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2}){21,}+", re.ASCII)
#: Flags of PostGIS beside the type: there is a Z, an M, a number of the reference system.
_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000
_POINT_TYPE: Final = 1


def read_geometry(raw: str | bytes, field: str | None = None) -> tuple[float, float]:
    """The coordinates of a point in well-known text, or in binary, plain or in hexadecimal digits.

    >>> read_geometry("POINT(151.2 -33.9)")
    (151.2, -33.9)
    >>> read_geometry(bytes.fromhex("0101000000000000000000f03f0000000000000040"))
    (1.0, 2.0)
    """
    if isinstance(raw, str):
        found = _POINT.fullmatch(raw)
        if found is not None:
            return float(found[1]) + 0.0, float(found[2]) + 0.0
        if not _HEX.fullmatch(raw):
            raise RecordError(
                f"expected a point, POINT(longitude latitude) or [longitude, latitude], "
                f"got {describe(raw)}",
                field=field,
            )
        raw = bytes.fromhex(raw)
    return _binary(bytes(raw), field)


def _binary(data: bytes, field: str | None) -> tuple[float, float]:
    if len(data) >= 21 and data[0] in (0, 1):
        order = "<" if data[0] else ">"
        (said,) = struct.unpack_from(f"{order}I", data, 1)
        at = 9 if said & _SRID else 5
        plain = said & ~(_Z | _M | _SRID)
        more = plain // 1000  # ISO: 1 has a Z, 2 an M, 3 both
        numbers = 2 + (bool(said & _Z) + bool(said & _M) or (0, 1, 1, 2)[more if more < 4 else 0])
        if plain % 1000 == _POINT_TYPE and more < 4 and len(data) == at + 8 * numbers:
            x, y = struct.unpack_from(f"{order}2d", data, at)
            if not (math.isnan(x) or math.isnan(y)):
                return x, y
    raise RecordError("expected a point in well-known binary, got other bytes", field=field)
