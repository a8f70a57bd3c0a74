"""The sections [schema] and [[source]] of a `stentor.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Final, cast, get_args

from stentor.model import Kind
from stentor.pipeline.config.sections import Section, nearest, shown
from stentor.pipeline.sources.settings import RANGE, Columns, Format, Source, What

KINDS: Final = (*Kind, Kind.NUMBER + RANGE, Kind.TIMESTAMP + RANGE)

_COLUMNS: Final = tuple(one.name for one in fields(Columns))


def read_kinds(section: Section) -> dict[str, str]:
    """The attributes that [schema] declares."""
    kinds = section.pairs()
    for name, kind in kinds.items():
        if kind not in KINDS:
            expected = f"expected one of {', '.join(KINDS)}, got {shown(kind)}"
            section.wrong(name, expected + nearest(kind, KINDS))
    if not kinds:
        section.wrong(None, 'expected attributes and their types, like price = "number"')
    return kinds


def read_sources(top: Section, folder: Path, columns: Columns) -> list[Source]:
    """All of [[source]]; *columns* are those that [order] names for all of them."""
    given = top.any("source")
    if given is None:
        top.wrong("[[source]]", "missing; name at least one source of records")
        return []
    if not isinstance(given, list):
        top.wrong("[[source]]", "write it with two brackets: there may be several")
        return []
    found = []
    for number, table in enumerate(given, 1):
        section = top.at(f"[[source]] {number}", table)
        found.append(_source(section, folder, columns))
        section.close()
    return [one for one in found if one is not None]


def _source(section: Section, folder: Path, default: Columns) -> Source | None:
    of = section.one_of("format", get_args(Format))
    kind = section.one_of("kind", get_args(What))
    section.needs("format", of, ", ".join(get_args(Format)))
    section.needs("kind", kind, ", ".join(get_args(What)))
    path, topic, servers = (section.text(key) for key in ("path", "topic", "servers"))
    max_files, max_records = (section.count(key) for key in ("max_files", "max_records"))
    drop = section.texts("drop")
    named = section.inner("columns")
    columns = {key: name for key in _COLUMNS if (name := named.text(key)) is not None}
    named.close()
    options = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in section.inner("options").pairs().items()
    }
    if of is not None:
        _check_fit(section, of)
    if of is None or kind is None:
        return None
    if path is not None and "://" not in path:
        path = str(folder / path)
    return Source(
        format=cast("Format", of),
        kind=cast("What", kind),
        path=path,
        topic=topic,
        servers=servers,
        columns=replace(default, **columns),
        drop=drop,
        max_files=max_files,
        max_records=max_records,
        options=options,
    )


def _check_fit(section: Section, of: str) -> None:
    """Keep what a source of the format *of* needs and lacks, or has and cannot use."""
    if of == "kafka":
        needed = {"topic": "its name", "servers": "host:port"}
        useless = ["path", "max_files"]
    else:
        needed = {"path": "a folder or a pattern"}
        useless = ["topic", "servers", "max_records"]
    for key, what in needed.items():
        section.needs(key, None, what)
    for key in useless:
        if section.has(key):
            section.wrong(key, f"a source of format {of} has none")
    if of not in ("parquet", "delta") and section.has("drop"):
        section.wrong("drop", "of Parquet and Delta only; otherwise [schema] says what counts")


def check_sources(top: Section, sources: list[Source], kinds: Mapping[str, str] | None) -> None:
    """Keep what contradicts itself between sources."""
    for key in ("order", "time"):
        has = [one.columns.of(key) is not None for one in sources]
        if any(has) and not all(has):
            without = sources[has.index(False)].name
            top.wrong(
                "[[source]]",
                f"all sources name a column for the {key} or none does; {without} has none",
            )
    seen: set[str] = set()
    for one in sources:
        if one.name in seen:
            top.wrong("[[source]]", f"{one.name} stands twice; its records would be read twice")
        seen.add(one.name)
    for one in sources:
        if one.format == "kafka" and one.kind != "changes" and kinds is None:
            top.wrong("[schema]", f"missing; expected because {one.name} cannot be looked into")
