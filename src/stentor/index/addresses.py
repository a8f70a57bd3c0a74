"""Which addresses name a folder of this machine: engine and pipeline write to no other.

What Spark itself reads may lie anywhere that the session can reach.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from stentor.errors import SettingsError

# One letter before the colon is a drive of Windows.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def has_scheme(address: str | os.PathLike[str]) -> bool:
    """Whether *address* names another file system, or this one by a scheme.

    >>> has_scheme("s3a://bucket/out"), has_scheme("file:/out"), has_scheme("./a:b")
    (True, True, False)
    """
    return _SCHEME.match(os.fspath(address)) is not None


def scheme_mistake(address: str | os.PathLike[str]) -> str:
    """What is wrong with an *address* that has a scheme, where a folder is needed."""
    scheme, _, rest = os.fspath(address).partition(":")
    if scheme.lower() == "file":
        advice = f"write the path alone, {'/' + rest.lstrip('/')}"
    else:
        advice = (
            "choose a folder of a disk that all who use it see, mounted where need be; where a "
            "folder is called so, write ./ before its name"
        )
    return f"{os.fspath(address)} is an address of the scheme {scheme!r}, not a folder; {advice}"


def local_folder(given: str | os.PathLike[str], what: str) -> Path:
    """The folder *given*, which is *what*; a SettingsError where it is an address elsewhere.

    >>> local_folder("s3a://bucket/out", "path")
    Traceback (most recent call last):
    stentor.errors.SettingsError: path: s3a://bucket/out is an address of the scheme 's3a', not a \
folder; choose a folder of a disk that all who use it see, mounted where need be; where a folder \
is called so, write ./ before its name
    """
    if has_scheme(given):
        raise SettingsError(f"{what}: {scheme_mistake(given)}")
    return Path(given)
