"""The description of an overlay: brokers, links, policies and a workload, in TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stentor.broker import Overlay, policy_of
from stentor.errors import RecordError, SettingsError, StentorError
from stentor.index.catalog import index_class
from stentor.model import Schema
from stentor.model.record import Record
from stentor.pipeline.config.sections import Section, shown
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings
from stentor.wire.records import record_from_dict
from stentor.wire.rejected import Rejected
from stentor.workloads.cubes import DISTRIBUTIONS, Cubes

_DEFAULTS: Final = {"subscriptions": 1000, "events": 1000, "dimensions": 2, "size": 4, "sizes": 1}


@dataclass(frozen=True)
class Described:
    """What a file says."""

    links: tuple[tuple[str, str], ...]
    policies: dict[str, str]  # by broker
    index: str
    schema: Schema
    seed: int
    records: Path | None
    cubes: Cubes
    subscriptions: int
    events: int

    def overlay(self) -> Overlay:
        """The overlay, with nothing in it."""
        return Overlay(
            self.policies, self.links, policy=self.policies, index=self.index, schema=self.schema
        )

    def workload(self) -> Iterator[Record]:
        """The records of the file, or drawn ones: first all subscriptions, then all events."""
        if self.records is not None:
            for chunk in open_records(
                self.records, self.schema, ReadSettings(default_op="publish")
            ):
                for one in chunk.records:
                    if isinstance(one, Rejected):
                        raise RecordError(f"{self.records}: {one.reason}")
                    yield one
            return
        for number, text in enumerate(self.cubes.texts(self.subscriptions)):
            raw = {"op": "subscribe", "id": f"s{number}", "expression": text}
            yield record_from_dict(raw, self.schema)
        for event in self.cubes.events(self.events):
            yield record_from_dict({"op": "publish", **event}, self.schema)


def load(path: Path) -> Described:
    """What the file *path* says; a SettingsError lists every mistake in it."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    mistakes: list[str] = []
    described = _read(Section("", raw, mistakes), path.parent, mistakes)
    if mistakes:
        raise SettingsError(f"{path}:\n" + "\n".join(f"  {one}" for one in mistakes))
    return described


def _read(file: Section, folder: Path, mistakes: list[str]) -> Described:
    links = _links(file)
    own = file.inner("brokers", "[brokers]").pairs()
    policy, index = file.text("policy") or "covering", file.text("index") or "auto"
    names = dict.fromkeys([*(name for link in links for name in link), *own])
    policies = {name: str(own.get(name, policy)) for name in names}
    for name in dict.fromkeys(policies.values()):
        _tried(file, "policy", lambda name=name: policy_of(name))
    _tried(file, "index", lambda: index_class(index))
    if not names:
        file.wrong("links", 'missing; expected pairs of brokers, like [["west", "east"]]')
    kinds = file.inner("schema", "[schema]").pairs()
    section = file.inner("workload", "[workload]")
    counts = {name: section.count(name) or most for name, most in _DEFAULTS.items()}
    seed = section.count("seed") or 1
    records = section.text("records")
    kind = section.one_of("distribution", DISTRIBUTIONS) or "uniform"
    section.close()
    file.close()
    try:
        cubes = Cubes(seed, kind, counts["dimensions"], counts["size"], counts["sizes"])
        given = Schema.declare(kinds) if kinds else Schema()
        schema = cubes.schema if records is None else given
    except StentorError as error:
        mistakes.append(str(error))
        cubes, schema = Cubes(), Schema()
    file_of_records = None if records is None else folder / records
    return Described(
        links,
        policies,
        index,
        schema,
        seed,
        file_of_records,
        cubes,
        counts["subscriptions"],
        counts["events"],
    )


def _links(file: Section) -> tuple[tuple[str, str], ...]:
    value: Any = file.any("links")
    found = []
    for link in value if isinstance(value, list) else ():
        match link:
            case [str(one), str(other)]:
                found.append((one, other))
            case _:
                file.wrong("links", f'expected pairs like ["west", "east"], got {shown(link)}')
    return tuple(found)


def _tried(file: Section, key: str, make: Any) -> None:
    try:
        make()
    except StentorError as error:
        file.wrong(key, str(error))
