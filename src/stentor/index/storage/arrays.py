"""Arrays in a folder: one `.npy` file each, and a manifest that says what must be there.

Named tuples of arrays are written under a prefix of their own. Sizes are checked when a
folder is opened, sums on request; a folder that is foreign, damaged or newer is a FolderError.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt

from stentor.errors import FolderError
from stentor.index.storage.folders import current, replacing

FORMAT = "stentor"
VERSION = 1
MANIFEST = "manifest.json"
Arrays = dict[str, npt.NDArray[Any]]
Meta = dict[str, Any]
#: How to bring what a folder of an older version holds (kind, arrays, meta) to the next version.
_UPGRADES: dict[int, Callable[[str, Arrays, Meta], tuple[Arrays, Meta]]] = {}
#: What reading JSON that somebody else wrote may raise.
_UNREADABLE = (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
#: What NumPy raises for bytes that are no array: it reads a header as Python.
_NO_ARRAY = (
    *(OSError, SyntaxError, TokenError, ValueError, TypeError, LookupError, EOFError),
    *(MemoryError, OverflowError, RecursionError),
)
Bundle = TypeVar("Bundle", bound=tuple[npt.NDArray[Any], ...])


class _Header(msgspec.Struct):
    """What the manifests of all versions have in common."""

    format: str
    version: int


class _Entry(msgspec.Struct):
    """What the manifest says of one array."""

    file: str
    dtype: str
    shape: list[int]
    bytes: int
    sum: str


class _Manifest(_Header):
    kind: str
    meta: Meta
    arrays: dict[str, _Entry]
    sum: str = ""  # of the manifest itself, while this is empty


def write_arrays(
    folder: Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    kind: str,
    meta: Mapping[str, Any],
) -> None:
    """Write *arrays* and *meta* (whatever JSON can hold) to *folder*, replacing its content.

    All or nothing: `folders.py` says how. A folder that Stentor did not write is not replaced.
    """
    with new_folder(folder) as fresh:
        entries = {name: _write_array(fresh, name, array) for name, array in arrays.items()}
        manifest = _Manifest(FORMAT, VERSION, kind, dict(meta), entries)
        manifest.sum = _sum(msgspec.json.encode(manifest))
        text = msgspec.json.format(msgspec.json.encode(manifest))
        (fresh / MANIFEST).write_bytes(text)


def new_folder(folder: Path) -> AbstractContextManager[Path]:
    """A new folder to be filled in a `with` block; at its end it replaces *folder*.

    For what consists of several folders of arrays, to be replaced together; `write_arrays` may
    write into the new folder itself and into folders in it, in any order.
    """
    return replacing(folder, may_replace=_refuse_foreign)


def read_arrays(
    folder: Path, *, kind: str | tuple[str, ...], verify: bool = False
) -> tuple[Arrays, Meta]:
    """The arrays in *folder*, memory-mapped and read-only, and what was written as their meta.

    They are of a *kind*, or of one of several.

    Raises `FolderError` where it does not hold what its manifest says; with *verify* the sums are
    compared too.
    """
    folder = current(folder)
    manifest = _read_manifest(folder)
    kinds = (kind,) if isinstance(kind, str) else kind
    if manifest.kind not in kinds:
        found = f"{folder} holds {manifest.kind!r}"
        raise FolderError(f"{found}, expected {kinds[0]!r}; check the path")
    try:
        arrays = {name: _open_array(folder, each, verify) for name, each in manifest.arrays.items()}
    except FolderError:
        raise
    except OSError as error:  # a file has gone meanwhile, or the disk fails
        raise _damaged(folder, f"a file cannot be read ({error})") from None
    meta = manifest.meta
    for version in range(manifest.version, VERSION):
        arrays, meta = _UPGRADES[version](manifest.kind, arrays, meta)
    return arrays, meta


def inner_folder(folder: Path, name: str) -> Path:
    """The folder *name* in *folder*: never one that is elsewhere."""
    inner = folder / name
    if not _NAME.fullmatch(name) or inner.is_symlink():
        raise _damaged(folder, f"{name!r} is no folder of its own")
    return inner


def refuse(folder: Path, fault: str | None) -> None:
    """Raise a `FolderError` where something is at *fault*."""
    if fault is not None:
        raise _damaged(folder, f"{fault} cannot be right")


def _write_array(folder: Path, name: str, array: npt.NDArray[Any]) -> _Entry:
    """Write *array*; its entry in the manifest."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot name a file; use letters, digits, '_', '.' and '-'")
    if array.dtype.hasobject or array.dtype.names:
        raise ValueError(f"{name}: arrays of {array.dtype} are not stored; use a plain dtype")
    plain = np.asarray(array, order="C")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(plain))
    content = plain.reshape(-1).view(np.uint8).data
    path = folder / f"{name}.npy"
    with path.open("wb") as file:
        file.write(header.getvalue())
        file.write(content)
    return _Entry(
        file=path.name,
        dtype=plain.dtype.str,
        shape=list(plain.shape),
        bytes=path.stat().st_size,
        sum=_sum(header.getvalue(), content),
    )


def _header_bytes(path: Path) -> int:
    with path.open("rb") as file:
        major, _ = np.lib.format.read_magic(file)
        length = file.read(2 if major == 1 else 4)
        return file.tell() + int.from_bytes(length, "little")


def _open_array(folder: Path, entry: _Entry, verify: bool) -> npt.NDArray[Any]:
    """The array that *entry* describes, if the file is that array."""
    path = folder / entry.file
    if not _NAME.fullmatch(entry.file) or path.is_symlink() or not path.is_file():
        raise _damaged(folder, f"{entry.file} is missing")
    size = path.stat().st_size
    if size != entry.bytes:
        raise _damaged(folder, f"{entry.file} has {size:,} bytes, expected {entry.bytes:,}")
    if verify and _sum_of_file(path) != entry.sum:
        raise _damaged(folder, f"the bytes of {entry.file} are not those that were written")
    is_empty = 0 in entry.shape  # no system maps an empty range
    try:
        plain: npt.NDArray[Any] = np.asarray(
            np.load(path, mmap_mode=None if is_empty else "r", allow_pickle=False)
        )
    except _NO_ARRAY as error:
        raise _damaged(folder, f"{entry.file} cannot be read as .npy file ({error})") from None
    plain.flags.writeable = False
    if not is_empty and plain.nbytes + _header_bytes(path) != size:
        raise _damaged(folder, f"the header of {entry.file} is not as long as it was")
    if plain.dtype.str != entry.dtype or list(plain.shape) != entry.shape:
        got, expected = f"{plain.dtype.str} {plain.shape}", f"{entry.dtype} {tuple(entry.shape)}"
        raise _damaged(folder, f"{entry.file} holds {got}, expected {expected}")
    return plain


def _read_manifest(folder: Path) -> _Manifest:
    if not folder.is_dir():
        raise FolderError(f"there is no folder {folder}; check the path, or save something first")
    header = None if (folder / MANIFEST).is_symlink() else _header(folder)
    if header is None:
        raise FolderError(
            f"{folder} has no {MANIFEST} of Stentor's, so it is another program's; check the path"
        )
    if header.version > VERSION:
        raise FolderError(
            f"{folder} has format version {header.version}, this Stentor reads up to {VERSION}; "
            "upgrade Stentor to open it"
        )
    if any(version not in _UPGRADES for version in range(header.version, VERSION)):
        raise FolderError(
            f"{folder} has format version {header.version}, which this Stentor cannot upgrade; "
            "open and save it with the release that wrote it and each one after"
        )
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest)
    except _UNREADABLE as error:
        raise _damaged(folder, f"{MANIFEST} cannot be read ({error})") from None
    found, manifest.sum = manifest.sum, ""
    if found != _sum(msgspec.json.encode(manifest)):
        raise _damaged(folder, f"{MANIFEST} is not as it was written")
    return manifest


def _header(folder: Path) -> _Header | None:
    """The header of *folder*'s manifest; None where it is missing or not Stentor's."""
    try:
        header = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Header)
    except _UNREADABLE:
        return None
    return header if header.format == FORMAT else None


def _refuse_foreign(folder: Path) -> None:
    if not _is_ours(folder):
        raise FolderError(
            f"{folder} exists and Stentor did not write it, so it is not replaced; "
            "choose another folder, or remove it first"
        )


def _is_ours(path: Path) -> bool:
    """Whether *path* holds only what Stentor wrote; an empty folder does."""
    return path.is_dir() and (
        _header(path) is not None or all(_is_ours(inner) for inner in path.iterdir())
    )


def _damaged(folder: Path, what: str) -> FolderError:
    return FolderError(f"{folder} is damaged: {what}; copy it again or restore it from a backup")


def _sum(*parts: bytes | memoryview) -> str:
    digest = _digest()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _sum_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, _digest).hexdigest()


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def with_prefix(prefix: str, bundle: tuple[npt.NDArray[Any], ...]) -> Arrays:
    """The arrays of *bundle*, a named tuple, as `write_arrays` takes them."""
    named = cast("NamedTuple", bundle)._asdict()
    return {f"{prefix}.{name}": array for name, array in named.items()}


def bundle_of(kind: type[Bundle], prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Bundle:
    """The named tuple *kind* that was written under *prefix*."""
    names = [f"{prefix}.{name}" for name in cast("type[NamedTuple]", kind)._fields]
    for name in names:
        if name not in arrays:
            raise FolderError(f"the folder has no array {name}; write it again with this Stentor")
    return kind(*(arrays[name] for name in names))
