"""`stentor migrate`: what an older version wrote, brought forward; and what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from stentor.errors import SettingsError

_COMMITS: Final = "manifests"
_SQLITE: Final = b"SQLite format 3\0"


def command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of engines, saved or durable, and of streams; stores of brokers."
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Say what would be done, and do nothing.")
    ] = False,
) -> None:
    """Bring folders and stores of an older version forward, and say what was done.

    Each is replaced as a whole or stays as it was. What is of this version already is left alone.

        stentor migrate kept/ broker.sqlite
    """
    for path in folders:
        for line in migrated(path, is_check=check):
            print(f"{path}: {line}")


def migrated(path: Path, *, is_check: bool = False) -> Iterator[str]:
    """Bring *path* forward, and say what was done; with *is_check* only what would be."""
    migrate = _migration(path)
    if migrate is None:
        raise SettingsError(
            f"{path} is no folder of an engine or of a stream, and no store of a broker"
        )
    yield from migrate(path, is_check)


def _migration(path: Path) -> Callable[[Path, bool], Iterator[str]] | None:
    from stentor.engine.folder import STORE
    from stentor.index.storage.arrays import MANIFEST

    if path.is_file():
        with path.open("rb") as file:
            return _store if file.read(len(_SQLITE)) == _SQLITE else None
    if (path / STORE).exists():
        return _durable
    if (path / MANIFEST).exists():
        return _saved
    return _stream if (path / _COMMITS).is_dir() else None


def _saved(path: Path, is_check: bool) -> Iterator[str]:
    import stentor
    from stentor.engine.folder import written_by

    was = written_by(path)
    if was == stentor.__version__:
        yield f"a saved engine of {was}, which this is: nothing to do"
        return
    engine = stentor.Engine.open(path, verify=True, clock=None)
    counts = f"{len(engine):,} subscriptions, {len(engine.live()):,} live events"
    said = f"a saved engine of {was or 'version 0.1'}: {counts}"
    if is_check:
        yield f"{said}; it can be brought to {stentor.__version__}"
        return
    engine.save(path)
    again = stentor.Engine.open(path, clock=None)
    yield f"{said}; checked, its index built anew, written as {stentor.__version__}"
    yield f"opened again: {len(again):,} subscriptions, {len(again.live()):,} live events"


def _durable(path: Path, is_check: bool) -> Iterator[str]:
    import stentor

    if is_check:
        yield "a durable engine; its changes would be made into a new base"
        return
    with stentor.Engine.open(path, durable=True, clock=None) as engine:
        counts = f"{len(engine):,} subscriptions, {len(engine.live()):,} live events"
        engine.make_base()  # type: ignore[attr-defined]
    yield f"a durable engine: {counts}; changes made into a new base of {stentor.__version__}"


def _store(path: Path, is_check: bool) -> Iterator[str]:
    from stentor.broker.store import Store, version_of

    was, now = version_of(path)
    if was == now:
        yield f"a broker's store of version {now}, which this is: nothing to do"
    elif is_check:
        yield f"a broker's store of version {was}; it can be brought to {now}"
    else:
        Store(path).close()
        yield f"a broker's store of version {was}, brought to version {now}"


def _stream(path: Path, is_check: bool) -> Iterator[str]:
    from stentor.pipeline.commit.manifests import VERSION, Commits

    last = Commits(path).last()
    if last is None:
        yield "a stream that has committed nothing: nothing to do"
        return
    yield (
        f"a stream, its last batch is {last.batch}; its manifests are read in any version up to "
        f"{VERSION}, and the next batch is written in that: nothing to do"
    )
