"""Files of real data, for benchmarks where they are at hand.

The environment variable STENTOR_DATA names a folder with text files, plain or packed with zstd
(`gnis_us_names.psv` or `gnis_us_names.psv.zst`), each with a line of headings first.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

from stentor.encoding.columns import Float64
from stentor.errors import SettingsError
from stentor.model import Box
from stentor_lab.workloads.roads import RoadNetwork

VARIABLE: Final = "STENTOR_DATA"


def is_there() -> bool:
    """Whether the user named a folder of real data."""
    return bool(os.environ.get(VARIABLE))


def has(*names: str) -> bool:
    """Whether the user's folder has all of these files, packed or plain."""
    if not is_there():
        return False
    folder = Path(os.environ[VARIABLE])
    return all((folder / f"{one}.zst").is_file() or (folder / one).is_file() for one in names)


def contents() -> str:
    """What the user's folder has, as a short digest of names and sizes; '' without a folder."""
    if not is_there():
        return ""
    found = sorted((one.name, one.stat().st_size) for one in Path(os.environ[VARIABLE]).iterdir())
    return sha256(repr(found).encode()).hexdigest()[:12]


def opened(name: str) -> Any:
    """The file *name* as a stream of bytes; unpacked, if it is packed."""
    if not is_there():
        raise SettingsError(f"real data is needed: let {VARIABLE} name the folder with {name}")
    folder = Path(os.environ[VARIABLE])
    for path, packing in ((folder / f"{name}.zst", "zstd"), (folder / name, None)):
        if path.is_file():
            return pa.input_stream(str(path), compression=packing)
    raise SettingsError(
        f"{VARIABLE} is {str(folder)!r}, where there is no {name}.zst nor {name}; "
        "put it there, or unset the variable to do without real data"
    )


def table_of(name: str, columns: list[str], delimiter: str = ",") -> pa.Table:
    """The *columns* of a table whose fields hold no quotes that mean something."""
    with opened(name) as stream:
        return pa.csv.read_csv(
            stream,
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=pa.csv.ConvertOptions(include_columns=columns),
        )


def places_of(table: pa.Table) -> tuple[Float64, Float64]:
    """The columns `lon` and `lat` of *table*."""
    return table["lon"].to_numpy(), table["lat"].to_numpy()


def roads_of(name: str, space: Box) -> RoadNetwork:
    """The roads of a map (`N id x y`, `E id from to length`), stretched over *space*."""
    with opened(name) as stream:
        lines = stream.read().decode().splitlines()
    crossings = [line.split() for line in lines if line.startswith("N ")]
    roads = [line.split() for line in lines if line.startswith("E ")]
    number = {fields[1]: position for position, fields in enumerate(crossings)}
    ends = np.array([[number[fields[2]], number[fields[3]]] for fields in roads], np.int64)
    x, y = np.array([fields[2:4] for fields in crossings], np.float64).T
    return RoadNetwork.onto(space, x, y, *ends.T)
