"""What comes to an overlay: the records of a file, or ranges drawn as the MICS paper does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import StentorError
from stentor.language.check import check_and_learn
from stentor.model import Schema
from stentor.model.record import Record, Subscribe
from stentor.pipeline.config.reader import Count, Text, TomlSection
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings
from stentor.wire.records import record_from_dict
from stentor.wire.rejected import Rejected
from stentor_lab.workloads.cubes import DISTRIBUTIONS, Cubes

_DEFAULTS: Final = {"subscriptions": 1000, "events": 1000, "dimensions": 2, "size": 4, "sizes": 1}
#: Subscriptions that are looked at before a space is chosen.
SAMPLE: Final = 10_000
#: Records of a file that are read together, so that a person sees how far it is.
_CHUNK: Final = 500


class Coming(NamedTuple):
    """A record, and how far the workload has come with it."""

    record: Record
    done: int


#: Hears why a line of the file cannot be read.
Reject = Callable[[str], None]


@dataclass(frozen=True)
class Workload:
    """Records of the file *path*, or without one so many subscriptions, then so many events."""

    schema: Schema
    path: Path | None
    cubes: Cubes
    subscriptions: int
    events: int
    burst: int  # changes of subscriptions that come before the links carry anything

    @property
    def total(self) -> int:
        """How far it goes: records, or bytes of the file."""
        drawn = self.subscriptions + self.events
        return drawn if self.path is None else self.path.stat().st_size

    def records(self, reject: Reject, schema: Schema | None = None) -> Iterator[Coming]:
        """All records that can be read; *reject* hears of the others."""
        known = self.schema if schema is None else schema
        return self._drawn(known) if self.path is None else self._read(self.path, known, reject)

    def _read(self, path: Path, schema: Schema, reject: Reject) -> Iterator[Coming]:
        settings = ReadSettings(default_op="publish")
        for chunk in open_records(path, schema, settings, chunk_records=_CHUNK):
            for one in chunk.records:
                if isinstance(one, Rejected):
                    reject(f"{path.name}, line {one.line}: {one.reason}")
                else:
                    yield Coming(one, chunk.bytes_read)

    def _drawn(self, schema: Schema) -> Iterator[Coming]:
        for number, text in enumerate(self.cubes.texts(self.subscriptions)):
            raw = {"op": "subscribe", "id": f"s{number}", "expression": text}
            yield Coming(record_from_dict(raw, schema), number + 1)
        for number, event in enumerate(self.cubes.events(self.events), self.subscriptions):
            yield Coming(record_from_dict({"op": "publish", **event}, schema), number + 1)

    def sample(self) -> tuple[SubscriptionColumns, Schema]:
        """The first subscriptions as columns of a schema of their own."""
        schema = Schema.from_dict(self.schema.to_dict())
        coming = self.records(lambda reason: None, schema)
        wishes = (one.record.subscription for one in coming if isinstance(one.record, Subscribe))
        standing = []
        for wish in islice(wishes, SAMPLE):
            _, form = check_and_learn(wish.expression, schema, where=f"subscription {wish.id!r}")
            standing.append(NormalisedSubscription(form, wish.at))
        return encode_subscriptions(standing, schema), schema


def read_workload(section: TomlSection, folder: Path, kinds: dict[str, str]) -> Workload:
    """What the section `[workload]` says; *kinds* are those of a file's attributes."""
    counts = {name: section.get(name, Count) or most for name, most in _DEFAULTS.items()}
    seed, burst = section.get("seed", Count) or 1, section.get("burst", Count) or 1
    kind = section.one_of("distribution", DISTRIBUTIONS) or "uniform"
    records = section.get("records", Text)
    path = None if records is None else folder / records
    if path is not None:
        for key in ("distribution", *_DEFAULTS):
            if section.has(key):
                section.add_mistake(key, "only drawn workloads have it, and `records` is given")
        if not path.is_file():
            section.add_mistake("records", f"there is no file {path}")
    section.close()
    cubes, schema = Cubes(), Schema()
    try:
        cubes = Cubes(seed, kind, counts["dimensions"], counts["size"], counts["sizes"])
        declared = Schema.declare(kinds) if kinds else schema
        schema = cubes.schema if path is None else declared
    except StentorError as error:
        section.add_mistake(None, str(error))
    return Workload(schema, path, cubes, counts["subscriptions"], counts["events"], burst)
