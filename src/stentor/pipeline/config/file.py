"""`stentor.toml`: everything that `stentor stream` runs, in one file.

`load` reads it and reports every mistake at once; `start_from` runs it. Paths are those of the
file's own folder. `examples/stentor.toml` in the repository has every key, with a comment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from stentor.errors import SettingsError
from stentor.index.catalog import index_class
from stentor.index.storage.folders import has_scheme
from stentor.model import Kind, Schema
from stentor.pipeline.config.reader import (
    Attributes,
    Count,
    Distance,
    Share,
    Span,
    Text,
    Texts,
    TomlSection,
    Truth,
)
from stentor.pipeline.sources import (
    FIELDS,
    KEYS,
    RANGE,
    SOURCES,
    Columns,
    SourceSettings,
    What,
    source_named,
)
from stentor.pipeline.storage.credentials import storage_options
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.stream.settings import PartitionName, PlanName, StreamSettings
from stentor.wire.events import RESERVED
from stentor.wire.limits import RecordLimits
from stentor.wire.mapping import NO_MAPPING, ColumnMapping

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from stentor.pipeline.stream.progress import BatchProgress

#: What a file says instead of a span where a record may be any time ahead.
ANY: Final = "any"
_SECTIONS: Final = (
    "schema", "tables", "index", "plan", "order", "limits", "trigger", "kafka", "retention",
    "merge", "storage",
)  # fmt: skip
_LIMITS: Final = ("attributes", "string_bytes", "record_bytes")
KINDS: Final = (*Kind, Kind.NUMBER + RANGE, Kind.TIMESTAMP + RANGE)
#: What is said of a key that a source lacks, where there is more to say.
_USELESS: Final = {"drop": "of Parquet and Delta only; otherwise [schema] says what counts"}
_COLUMNS: Final = tuple(one.name for one in fields(Columns))


@dataclass(frozen=True, kw_only=True)
class KafkaOut:
    """Where deliveries are sent on to."""

    topic: str
    servers: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of Spark's writer; `${NAME}` and `${file:PATH}` in them are secrets."""


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """What a file says: where records come from, where tables go, and how."""

    sources: tuple[SourceSettings, ...]
    path: Path | StreamFolder
    checkpoint: Path | StreamFolder | None = None
    kinds: Mapping[str, str] | None = None
    """Of attributes; None where they are to be inferred."""
    plane: bool = False
    settings: StreamSettings = field(default_factory=StreamSettings)
    trigger: Mapping[str, Any] = field(default_factory=dict)
    """As Spark's `DataStreamWriter.trigger` takes it."""
    kafka: KafkaOut | None = None

    @property
    def schema(self) -> Schema | None:
        """The declared schema."""
        if self.kinds is None:
            return None
        plain = {name: kind.removesuffix(RANGE) for name, kind in self.kinds.items()}
        return Schema.declare(plain, plane=self.plane)

    @property
    def folder(self) -> StreamFolder:
        """The folder of the stream, reached as far as that goes without a session of Spark."""
        return stream_folder(
            self.path,
            options=storage_options(None, self.settings.storage, self.path),
            cache=self.settings.local_cache,
        )

    @property
    def uses_s3(self) -> bool:
        """Whether the session needs Spark's own way to S3 (`spark.s3.s3_jars`)."""
        addresses = (self.checkpoint or self.path, *(one.path for one in self.sources))
        return any(str(one).startswith(("s3:", "s3a:")) for one in addresses)

    @property
    def uses_kafka(self) -> bool:
        """Whether the session needs Spark's connector for Kafka (`kafka.connector_jars`)."""
        return self.kafka is not None or any(
            "kafka" in source_named(one.format).jars for one in self.sources
        )


def load(path: str | Path) -> StreamConfig:
    """What the file *path* says; a SettingsError lists every mistake in it, and where it is."""
    file = Path(path)
    try:
        raw = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file} is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}") from None
    mistakes: list[str] = []
    config = _read(raw, file.resolve().parent, mistakes)
    if mistakes or config is None:
        count = f"{len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}"
        raise SettingsError(f"{file}: {count}\n" + "\n".join(f"  {one}" for one in mistakes))
    return config


def start_from(
    config: StreamConfig,
    spark: SparkSession,
    listeners: Sequence[Callable[[BatchProgress], None]] = (),
) -> StreamingQuery:
    """The running stream that *config* describes; *listeners* are called after each batch."""
    from stentor.pipeline.sinks.kafka import deliveries_to_kafka
    from stentor.pipeline.sources import open_source
    from stentor.pipeline.sources.attribute_types import committed_kinds
    from stentor.pipeline.spark.s3 import let_spark_reach
    from stentor.pipeline.stream.start import run

    storage = config.settings.storage
    options = storage_options(spark, storage, config.path)
    path = stream_folder(config.path, options=options, cache=config.settings.local_cache)
    for source in config.sources:
        where = source.path or ""
        let_spark_reach(spark, where, storage_options(spark, storage, where))
    kinds = config.kinds if config.kinds is not None else committed_kinds(path)
    frames = [
        open_source(spark, source, kinds)._replace(most_rejected=source.most_rejected)
        for source in config.sources
    ]
    outboxes = []
    if config.kafka is not None:
        out = config.kafka
        outbox = deliveries_to_kafka(
            spark, path, topic=out.topic, servers=out.servers, options=out.options
        )
        outboxes.append(outbox)
    return run(
        frames,
        path,
        config.settings,
        config.schema,
        config.trigger,
        config.checkpoint,
        [*outboxes, *listeners],
        [outbox.send_waiting for outbox in outboxes],
    )


def _key(name: str) -> Any:
    """A field that the file calls *name*."""
    return msgspec.field(default=None, name=name)


class _Settings(Struct):
    """What the file says of `StreamSettings`: field, kind, section and key."""

    index: Text | None = _key("index.name")
    top: Count | None = _key("index.top")
    plan: PlanName | None = _key("plan.name")
    shards: Count | None = _key("plan.shards")
    lateness: Distance | None = _key("order.lateness")
    idle: Span | None = _key("order.idle")
    most_rejected: Share | None = _key("limits.rejected")
    partition: PartitionName | None = _key("tables.partition")
    include: Attributes | None = _key("tables.include")
    stayed: Truth | None = _key("tables.stayed")
    local_cache_gb: Count | None = _key("tables.local_cache_gb")
    retention: Span | None = _key("retention.files")
    keep_deliveries: Span | None = _key("retention.deliveries")
    keep_events: Span | None = _key("retention.events")
    keep_rejected: Span | None = _key("retention.rejected")
    keep_manifests: Count | None = _key("retention.manifests")
    merge_share: Share | None = _key("merge.share")
    merge_least: Count | None = _key("merge.least")
    few_changes: Count | None = _key("merge.few_changes")
    finish_within: Span | None = _key("merge.finish_within")
    fold_after: Count | None = _key("merge.fold_after")
    compact_after: Count | None = _key("merge.compact_after")


class _Source(Struct):
    kind: What | None = None
    path: Text | None = None
    topic: Text | None = None
    servers: Text | None = None
    max_files: Count | None = None
    max_records: Count | None = None
    drop: Texts | None = None
    most_rejected: Share | None = None


def _read(raw: Mapping[str, Any], folder: Path, mistakes: list[str]) -> StreamConfig | None:
    top = TomlSection("", raw, mistakes)
    sections = {name: top.inner(name, f"[{name}]") for name in _SECTIONS}
    kinds = sections["schema"].kinds(KINDS) if "schema" in raw else None
    by, time = (sections["order"].get(name, Text) for name in ("by", "time"))
    sources = _sources(top, folder, Columns(order=by, time=time))
    _check_sources(top, sources, kinds)
    path, checkpoint = (sections["tables"].address(name, folder) for name in ("path", "checkpoint"))
    cache = sections["tables"].folder("local_cache", folder)
    sections["tables"].require("path", "the folder of the tables")
    plane = sections["index"].get("plane", Truth) or False
    if plane and kinds is None:
        sections["index"].add_mistake("plane", "declare the attributes in [schema] too")
    settings = _settings(sections, sources)
    if cache is not None:
        settings = replace(settings, local_cache=str(cache))
    settings = replace(settings, storage=sections["storage"].options(folder))
    trigger = _trigger(sections["trigger"])
    kafka = _kafka(sections["kafka"], folder) if "kafka" in raw else None
    for section in (top, *sections.values()):
        section.close()
    if mistakes or path is None:
        return None
    return StreamConfig(
        sources=tuple(sources),
        path=path,
        checkpoint=checkpoint,
        kinds=kinds,
        plane=plane,
        settings=settings,
        trigger=trigger,
        kafka=kafka,
    )


def _settings(sections: Mapping[str, TomlSection], sources: list[SourceSettings]) -> StreamSettings:
    given: dict[str, Any] = {}
    for one in msgspec.structs.fields(_Settings):
        section, _, name = one.encode_name.partition(".")
        given[one.name] = sections[section].get(name, one.type)
    given = {name: value for name, value in given.items() if value is not None}
    if "index" in given:
        try:
            index_class(given["index"])
        except SettingsError as error:
            sections["index"].add_mistake("name", str(error))
            del given["index"]
    if given.get("plan") == "replicated" and given.get("shards", 1) != 1:
        sections["plan"].add_mistake("shards", 'a replicated plan has one; choose name = "sharded"')
        del given["shards"]
    limits = sections["limits"]
    bounds = {name: limits.get(name, Count) for name in _LIMITS}
    most = {name: bound for name, bound in bounds.items() if bound is not None}
    given["limits"] = RecordLimits(**most)
    if limits.any("ahead") == ANY:
        given["most_ahead"] = None
    elif (ahead := limits.get("ahead", Span)) is not None:
        given["most_ahead"] = ahead
    for name in ("order", "time"):
        given[f"has_{name}"] = any(one.columns.of(name) is not None for one in sources)
    return StreamSettings(**given)


def _trigger(section: TomlSection) -> dict[str, Any]:
    interval, once = section.get("interval", Span), section.get("available_now", Truth)
    if interval is not None and once:
        section.add_mistake(None, "interval and available_now exclude each other; keep one")
    if once:
        return {"availableNow": True}
    if interval is None:
        return {}
    return {"processingTime": f"{interval // timedelta(milliseconds=1)} milliseconds"}


def _kafka(section: TomlSection, folder: Path) -> KafkaOut | None:
    topic, servers = section.get("topic", Text), section.get("servers", Text)
    section.require("topic", "the topic that deliveries go to")
    section.require("servers", "host:port")
    options = section.inner("options").options(folder)
    for name in options:  # for Spark upper and lower case are the same
        if name.lower() in ("topic", "kafka.bootstrap.servers"):
            section.add_mistake("options", f"{name} has a key of its own in [kafka]")
    return KafkaOut(topic=topic, servers=servers, options=options) if topic and servers else None


def _sources(top: TomlSection, folder: Path, columns: Columns) -> list[SourceSettings]:
    """All of [[source]]; *columns* are those that [order] names for all of them."""
    given = top.any("source")
    if given is None:
        top.add_mistake("[[source]]", "missing; name at least one source of records")
        return []
    if not isinstance(given, list):
        top.add_mistake("[[source]]", "write it with two brackets: there may be several")
        return []
    found = []
    for number, table in enumerate(given, 1):
        section = top.at(f"[[source]] {number}", table)
        found.append(_source(section, folder, columns))
        section.close()
    return [one for one in found if one is not None]


def _source(section: TomlSection, folder: Path, default: Columns) -> SourceSettings | None:
    of = section.one_of("format", tuple(SOURCES))
    given = section.read(_Source)
    section.require("format", ", ".join(SOURCES))
    section.require("kind", ", ".join(get_args(What)))
    named = section.inner("columns")
    columns = {name: found for name in _COLUMNS if (found := named.get(name, Text)) is not None}
    named.close()
    mapping = _mapping(section.inner("attributes"))
    options = section.inner("options").options(folder)
    if of is not None:
        for key, sentence in source_named(of).option_mistakes(options):
            section.add_mistake(key, sentence)
        _check_fit(section, of)
    if of is None or given.kind is None:
        return None
    found = {name: value for name, value in asdict(given).items() if value is not None}
    if given.path is not None and not has_scheme(given.path):
        found["path"] = str(folder / given.path)
    return SourceSettings(
        **found,
        format=of,
        columns=replace(default, **columns),
        attributes=mapping,
        options=options,
    )


def _mapping(section: TomlSection) -> ColumnMapping:
    """What attributes are made of: `loc = ["lon", "lat"]`, `price = "Preis"`."""
    try:
        return ColumnMapping.of(section.pairs())
    except SettingsError as error:
        section.add_mistake(None, str(error))
        return NO_MAPPING


def _check_fit(section: TomlSection, of: str) -> None:
    """Keep what a source of the format *of* needs and lacks, or has and cannot use."""
    source = source_named(of)
    for key, what in source.required.items():
        section.require(key, what)
    for key in KEYS:
        if key not in source.keys and section.has(key):
            section.add_mistake(key, _USELESS.get(key, f"a source of format {of} has none"))


def _check_sources(
    top: TomlSection, sources: list[SourceSettings], kinds: Mapping[str, str] | None
) -> None:
    """Keep what contradicts itself between sources."""
    for key in ("order", "time"):
        has = [one.columns.of(key) is not None for one in sources]
        if any(has) and not all(has):
            without = sources[has.index(False)].name
            top.add_mistake(
                "[[source]]",
                f"all sources name a column for the {key} or none does; {without} has none",
            )
    seen: set[str] = set()
    for one in sources:
        if one.name in seen:
            top.add_mistake(
                "[[source]]", f"{one.name} stands twice; its records would be read twice"
            )
        seen.add(one.name)
    for one in sources:
        is_closed = not source_named(one.format).is_looked_into
        if is_closed and one.kind != "changes" and kinds is None:
            top.add_mistake(
                "[schema]", f"missing; expected because {one.name} cannot be looked into"
            )
    declared = kinds or {}
    for one in sources:
        for what in FIELDS[one.kind] if one.kind != "changes" else ():
            name = one.columns.of(what)
            if one.columns.is_named(what) and name in declared and name not in RESERVED:
                top.add_mistake(
                    f"[schema], {name}",
                    f"in {one.name} it holds the {what}, so that no subscription could ask for it; "
                    "let events carry it as an attribute of another name too",
                )
