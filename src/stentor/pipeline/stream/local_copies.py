"""Bases on a worker's own disk: copied from the shared folder once per machine, sums compared.

For clusters whose shared folder is slow to map. All processes of a machine use one copy.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from stentor.pipeline.snapshots import open_index

#: Copies of one pipeline that are kept: the one in use, and the one before it.
KEPT = 2
#: Seconds after which a copy that has not grown is not being made any more.
ABANDONED = 3600.0


def local_copy(base: Path, cache: Path) -> Path:
    """The copy of the folder *base* in the folder *cache*, made now where there is none.

    A copy takes its place as a whole: a process that is killed, or a second one that copies at the
    same time, does no harm.
    """
    own = cache / f"{base.parent.parent.name}-{_token(base)}"
    copy = own / base.name
    if not copy.is_dir():
        _remove_abandoned(own)
        partial = own / f".{base.name}.{secrets.token_hex(8)}.partial"
        try:
            shutil.copytree(base, partial)
            open_index(partial, verify=True)
            partial.rename(copy)
        except OSError:
            if not copy.is_dir():  # another process was not faster: it is a real failure
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        _remove_old(own, copy)
    return copy


def _token(base: Path) -> str:
    """What tells pipelines of one name apart: where they stand."""
    return hashlib.blake2b(str(base.parent).encode(), digest_size=6).hexdigest()


def _remove_abandoned(own: Path) -> None:
    """Remove the copies that processes had begun when they were killed."""
    for partial in own.glob(".*.partial"):
        with suppress(FileNotFoundError):  # it was not abandoned: it is taking its place just now
            # Not the time of the content, which is the base's own once a copy is complete.
            changed = max(one.stat().st_ctime for one in (partial, *partial.rglob("*")))
            if time.time() - changed > ABANDONED:
                shutil.rmtree(partial, ignore_errors=True)


def _remove_old(own: Path, copy: Path) -> None:
    """Remove all but the newest copies of each shard; mapped files stay readable until closed."""
    _, shard, _ = copy.name.split("-")
    same = [one for one in own.glob(f"[0-9]*-{shard}-*") if one != copy]
    same.sort(key=lambda one: one.stat().st_mtime, reverse=True)
    for old in same[KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
