"""`stentor.toml`: everything that `stentor stream` runs, in one file.

`load` reads it and reports every mistake at once; `start_from` runs it. Paths are those of the
file's own folder. `examples/stentor.toml` in the repository has every key, with a comment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from stentor.errors import SettingsError
from stentor.index.catalog import index_class
from stentor.model import Schema
from stentor.pipeline.config.sections import Section
from stentor.pipeline.config.sources import check_sources, read_kinds, read_sources
from stentor.pipeline.sources.settings import RANGE, Columns, Source
from stentor.pipeline.stream.settings import PlanName, StreamSettings
from stentor.wire.limits import RecordLimits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from stentor.pipeline.stream.progress import BatchProgress

_EVERYTHING: Final = (
    "source", "schema", "tables", "index", "plan", "order", "limits", "trigger", "kafka",
    "retention", "merge",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class KafkaOut:
    """Where deliveries are sent on to."""

    topic: str
    servers: str


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """What a file says: where records come from, where tables go, and how."""

    sources: tuple[Source, ...]
    path: Path
    checkpoint: Path | None = None
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
    def uses_kafka(self) -> bool:
        """Whether the session needs Spark's connector for Kafka (`kafka.connector_jars`)."""
        return self.kafka is not None or any(one.format == "kafka" for one in self.sources)


def load(path: str | Path) -> StreamConfig:
    """What the file *path* says; a SettingsError lists every mistake in it, with its place."""
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
    """The running stream that *config* describes; *listeners* are told of each batch."""
    from stentor.pipeline.kafka.deliveries import deliveries_to_kafka
    from stentor.pipeline.sources.kinds import committed_kinds
    from stentor.pipeline.sources.open import open_source
    from stentor.pipeline.stream.start import run

    kinds = config.kinds if config.kinds is not None else committed_kinds(config.path)
    frames = [open_source(spark, source, kinds) for source in config.sources]
    outboxes = []
    if config.kafka is not None:
        topic, servers = config.kafka.topic, config.kafka.servers
        outboxes.append(deliveries_to_kafka(spark, config.path, topic=topic, servers=servers))
    return run(
        frames,
        config.path,
        config.settings,
        config.schema,
        config.trigger,
        config.checkpoint,
        [*outboxes, *listeners],
        [outbox.send_waiting for outbox in outboxes],
    )


def _read(raw: Mapping[str, Any], folder: Path, mistakes: list[str]) -> StreamConfig | None:
    top = Section("", raw, mistakes)
    sections = {name: top.inner(name, f"[{name}]") for name in _EVERYTHING if name != "source"}
    kinds = read_kinds(sections["schema"]) if "schema" in raw else None
    order, time = (sections["order"].text(key) for key in ("by", "time"))
    sources = read_sources(top, folder, Columns(order=order, time=time))
    check_sources(top, sources, kinds)
    path = sections["tables"].text("path")
    sections["tables"].needs("path", path, "the folder of the tables")
    checkpoint = sections["tables"].text("checkpoint")
    cache = sections["tables"].text("local_cache")
    plane = sections["index"].truth("plane") or False
    if plane and kinds is None:
        sections["index"].wrong("plane", "declare the attributes in [schema] too")
    settings = _settings(sections, sources)
    if cache is not None:
        settings = replace(settings, local_cache=str(folder / cache))
    trigger = _trigger(sections["trigger"])
    kafka = _kafka(sections["kafka"]) if "kafka" in raw else None
    for section in (top, *sections.values()):
        section.close()
    if mistakes or path is None:
        return None
    return StreamConfig(
        sources=tuple(sources),
        path=folder / path,
        checkpoint=None if checkpoint is None else folder / checkpoint,
        kinds=kinds,
        plane=plane,
        settings=settings,
        trigger=trigger,
        kafka=kafka,
    )


def _settings(sections: Mapping[str, Section], sources: list[Source]) -> StreamSettings:
    index, plan, limits = (sections[name] for name in ("index", "plan", "limits"))
    retention, merge = sections["retention"], sections["merge"]
    name = index.text("name")
    if name is not None:
        try:
            index_class(name)
        except SettingsError as error:
            index.wrong("name", str(error))
            name = None
    plan_name, shards = plan.one_of("name", get_args(PlanName)), plan.count("shards")
    if plan_name == "replicated" and shards not in (None, 1):
        plan.wrong("shards", 'a replicated plan has one; choose name = "sharded"')
        shards = None
    bounds = {key: limits.count(key) for key in ("attributes", "string_bytes", "record_bytes")}
    most: dict[str, Any] = {key: one for key, one in bounds.items() if one is not None}
    chosen = {
        "index": name,
        "top": index.count("top"),
        "plan": plan_name,
        "shards": shards,
        "has_order": any(one.columns.order is not None for one in sources),
        "has_time": any(one.columns.time is not None for one in sources),
        "limits": RecordLimits(**most),
        "most_ahead": limits.span("ahead"),
        "most_rejected": limits.share("rejected"),
        "retention": retention.span("files"),
        "keep_manifests": retention.count("manifests"),
        "merge_share": merge.share("share"),
        "merge_least": merge.count("least"),
        "few_changes": merge.count("few_changes"),
        "fold_after": merge.count("fold_after"),
        "compact_after": merge.count("compact_after"),
    }
    given: dict[str, Any] = {key: value for key, value in chosen.items() if value is not None}
    return StreamSettings(**given)


def _trigger(section: Section) -> dict[str, Any]:
    interval, once = section.span("interval"), section.truth("available_now")
    if interval is not None and once:
        section.wrong(None, "interval and available_now exclude each other; keep one")
    if once:
        return {"availableNow": True}
    if interval is None:
        return {}
    return {"processingTime": f"{interval // timedelta(milliseconds=1)} milliseconds"}


def _kafka(section: Section) -> KafkaOut | None:
    topic, servers = section.text("topic"), section.text("servers")
    section.needs("topic", topic, "the topic that deliveries go to")
    section.needs("servers", servers, "host:port")
    return KafkaOut(topic=topic, servers=servers) if topic and servers else None
