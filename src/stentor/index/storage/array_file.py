"""Arrays in one file, for what is small or short-lived: one file to write, sync and open.

    "STENTOR1" │ length of the header │ header (JSON) │ array │ array │ …

Each array begins at a multiple of 64 bytes. Opened by memory-mapping, read-only, without a copy;
the size of the file and the sum of the header are compared at every opening. `arrays.py` keeps
what is large in a folder of `.npy` files. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from stentor.errors import FolderError

MAGIC = b"STENTOR1"
ALIGNMENT = 64
_SUM_BYTES = 16


class _StoredArray(msgspec.Struct):
    """What the header says of one array."""

    dtype: str
    shape: list[int]
    start: int


class _Header(msgspec.Struct):
    kind: str
    meta: dict[str, Any]
    arrays: dict[str, _StoredArray]
    bytes: int  # of the whole file behind the header


def write_array_file(
    path: Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    kind: str,
    meta: Mapping[str, Any] | None = None,
    durable: bool = True,
) -> int:
    """Write *arrays* and *meta* to a new file; its size.

    A *durable* file is on the disk afterwards; its folder's entry is for the caller to sync.
    """
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    stored, size = {}, 0
    for name, array in plain.items():
        stored[name] = _StoredArray(array.dtype.str, list(array.shape), size)
        size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = msgspec.json.encode(_Header(kind, dict(meta or {}), stored, size))
    sealed_header = header + _sum(header)
    lead = MAGIC + len(sealed_header).to_bytes(8, "little") + sealed_header
    with path.open("xb") as file:
        file.write(lead + bytes(-len(lead) % ALIGNMENT))
        for array in plain.values():
            file.write(array.reshape(-1).view(np.uint8).data)
            file.write(bytes(-array.nbytes % ALIGNMENT))
        if durable:
            file.flush()
            os.fsync(file.fileno())
        return file.tell()


def read_array_file(path: Path, *, kind: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays in *path*, memory-mapped and read-only, and what was written as their meta."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise FolderError(f"{path} is missing; restore it from a backup") from None
    except ValueError:  # an empty file cannot be mapped
        raise _damaged(path, "it is empty") from None
    header, start = _header(path, content)
    if header.kind != kind:
        raise FolderError(f"{path} holds {header.kind!r}, expected {kind!r}; check the path")
    if len(content) != start + header.bytes:
        raise _damaged(path, f"it has {len(content):,} bytes, expected {start + header.bytes:,}")
    arrays = {}
    for name, entry in header.arrays.items():
        try:
            count = int(np.prod(entry.shape, dtype=np.int64))
            array = np.frombuffer(content, np.dtype(entry.dtype), count, start + entry.start)
            arrays[name] = array.reshape(entry.shape)
        except (TypeError, ValueError, OverflowError) as error:
            raise _damaged(path, f"{name} cannot be where it should be ({error})") from None
    return arrays, header.meta


def _header(path: Path, content: mmap.mmap) -> tuple[_Header, int]:
    """The header of the file, and where its arrays begin."""
    if content[: len(MAGIC)] != MAGIC:
        raise FolderError(f"{path} is no array file of Stentor's; check the path")
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(content[len(MAGIC) : start], "little")
    text, found = content[start : stop - _SUM_BYTES], content[stop - _SUM_BYTES : stop]
    if stop > len(content) or _sum(text) != found:
        raise _damaged(path, "its header is not as it was written")
    try:
        header = msgspec.json.decode(text, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, f"its header cannot be read ({error})") from None
    return header, -(-stop // ALIGNMENT) * ALIGNMENT


def _sum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_SUM_BYTES).digest()


def _damaged(path: Path, what: str) -> FolderError:
    return FolderError(f"{path} is damaged: {what}; restore it from a backup")
