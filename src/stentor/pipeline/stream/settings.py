"""How a stream is run: what the user chooses, what follows from it, what can never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from stentor.engine.included import Include
from stentor.errors import SettingsError
from stentor.index.catalog import AUTO, index_class, structure_of
from stentor.index.storage.folders import local_folder
from stentor.model import Schema
from stentor.pipeline.commit.manifests import Manifest
from stentor.pipeline.sources.text_records import TextFormat
from stentor.pipeline.storage.copies import MOST_BYTES
from stentor.pipeline.storage.folder import StreamFolder
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

PlanName = Literal["auto", "replicated", "sharded"]
PartitionName = Literal["date"]
#: Of a source's first so many records it is judged whether most of them are bad.
FIRST_RECORDS = 1_000
#: The share of them at which the stream stops.
MOST_FIRST_REJECTED = 0.5
#: Above so many subscriptions a plan that nobody chose becomes sharded, in shards of this size.
REPLICATED_MOST = 20_000_000


class FrameSettings(NamedTuple):
    """One of a stream's frames, for the steps that meet its records."""

    name: str = "records"
    texts: TextFormat | None = None
    """How its rows are read, where they are texts."""
    most_rejected: float = MOST_FIRST_REJECTED
    """The share of its first records that may be rejected."""


def lane_name(frame: str, source: str | None) -> str:
    """The lane of a record: its frame, or the partition of its topic."""
    return f"{frame}\n{source}" if source is not None and source.startswith("kafka:") else frame


def lane_frame(lane: str) -> str:
    """The frame of a *lane*."""
    return lane.partition("\n")[0]


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """The settings of a stream; those of records and time are fixed by its first batch."""

    index: str = "auto"
    top: int | None = None
    """Deliver an event to its k best subscriptions only."""
    plan: PlanName = "auto"
    shards: int | None = None
    """Of the sharded plan; by default as many as tasks can run at a time."""
    stayed: bool = False
    """Whether deliveries also say who wants an updated event as before."""
    include: tuple[str, ...] | str | None = None
    """Attributes of the event that deliveries tell, or "all"; and which alternative holds."""
    has_order: bool = False
    """Whether records say their position in the order."""
    has_time: bool = False
    """Whether records say when they happened; else the batch's own time serves."""
    lateness: int | timedelta = 0
    """How far below its source's largest position a record may still come and not be late: a
    number in the order's own unit, or a span where positions are timestamps."""
    idle: timedelta = timedelta(seconds=5)
    """How long sources of one order wait for one that brings nothing."""
    keeps_events: bool = False
    """Whether events stay live, so that none takes the short path; found out while it runs."""
    limits: RecordLimits = DEFAULT_RECORD_LIMITS
    most_ahead: timedelta | None = timedelta(days=1)
    """How far a record's time may be ahead of the batch's own: one wrong clock would end all that
    is live. None: any."""
    most_rejected: float | None = None
    """The share of rejected records at which the stream stops."""
    retention: timedelta = timedelta(days=7)
    """How long files that a newer version of a table has replaced are kept for its readers."""
    keep_deliveries: timedelta | None = None
    """How long rows stay in the table of deliveries, by logical time; None: for good. Rows go by
    whole files, once all rows of one are older."""
    keep_events: timedelta | None = None
    """The same in the table of events."""
    keep_rejected: timedelta | None = None
    """The same in the table of rejected records, by the time of the batches."""
    partition: PartitionName | None = None
    """By what the tables are partitioned: "date", the day of `time` in UTC. Fixed by the first
    batch."""
    few_changes: int = 5_000
    """So many changes of a batch are planned on the driver, more of them by the workers."""
    merge_share: float = 0.2
    """A new base is built when changes pass this share of the subscriptions …"""
    merge_least: int = 10_000
    """… and this many."""
    finish_within: timedelta = timedelta(minutes=10)
    """How long the end of a run waits for a new base, so that the next run starts from it."""
    fold_after: int = 16
    """So many segments of changes, or of live events, are made into one."""
    compact_after: int = 32
    """So many batches lie between two looks at a table's small files."""
    keep_manifests: int = 100
    local_cache: str | None = None
    """A folder on each worker's own disk into which bases are copied; None: they are mapped from
    the pipeline's folder, or copied into the user's cache where that is in a store."""
    local_cache_gb: int = MOST_BYTES >> 30
    """What a machine's copies of all streams may take, in GiB; what was used within the hour stays
    all the same."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How the store is reached, where the path is an address: keys of obstore, such as
    `aws_endpoint_url`; `${NAME}` and `${file:PATH}` in them are secrets. What is not said here
    Spark's own settings say, or the environment."""

    def __post_init__(self) -> None:
        index_class(self.index)
        Include.read(self.include)
        counts = ("top", "shards", "few_changes", "fold_after", "compact_after", "merge_least")
        for name in (*counts, "local_cache_gb"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise SettingsError(f"{name} is {value!r}; expected a whole number of at least 1")
        if self.plan not in get_args(PlanName):
            raise SettingsError(
                f"plan is {self.plan!r}; expected one of {', '.join(get_args(PlanName))}"
            )
        if self.partition not in (None, *get_args(PartitionName)):
            raise SettingsError(f"partition is {self.partition!r}; expected 'date', or none")
        if self.plan == "replicated" and self.shards not in (None, 1):
            raise SettingsError("a replicated plan has one shard; choose plan='sharded'")
        if self.lateness_units < 0 or self.idle < timedelta(0):
            raise SettingsError("lateness and idle are not below 0")
        if self.local_cache is not None:
            local_folder(self.local_cache, "local_cache")
        if self.most_rejected is not None and not 0 <= self.most_rejected <= 1:
            raise SettingsError(f"most_rejected is {self.most_rejected}; expected a share, 0 to 1")

    @property
    def keep(self) -> dict[str, timedelta]:
        """How long rows stay, by the table; for good where nothing is said."""
        spans = {
            "deliveries": self.keep_deliveries,
            "events": self.keep_events,
            "rejected": self.keep_rejected,
        }
        return {table: span for table, span in spans.items() if span is not None}

    @property
    def is_auto(self) -> bool:
        """Whether each base chooses its structure, by what its subscriptions test."""
        return self.index == AUTO

    @property
    def lateness_units(self) -> int:
        """The lateness in the order's own unit."""
        if isinstance(self.lateness, timedelta):
            return self.lateness // timedelta(microseconds=1)
        return self.lateness

    @property
    def structure(self) -> str:
        """The name of the structure that is built; of `auto`, the one before the first base."""
        return structure_of(index_class(self.index)).name

    def shard_count(self, subscriptions: int, slots: int, now: int = 1) -> int:
        """How many shards there are to be, where there are so many *now*."""
        if self.plan == "sharded":
            # How many tasks run at a time may change from start to start; that is no reason.
            return self.shards or (now if now > 1 else max(2, slots))
        if self.plan == "auto" and self.shards is not None:
            return self.shards
        if self.plan == "auto" and subscriptions > REPLICATED_MOST:
            return -(-subscriptions // REPLICATED_MOST)
        return 1


def check_unchanged(
    last: Manifest, path: Path | StreamFolder, settings: StreamSettings, declared: Schema | None
) -> None:
    """Refuse what cannot change once the pipeline in *path* has committed a batch, its *last*."""
    for name, meaning in (("has_order", "order"), ("has_time", "time")):
        if last.settings[name] != getattr(settings, name):
            was = "named" if last.settings[name] else "did not name"
            raise SettingsError(
                f"{path} began with a pipeline that {was} a column for the {meaning}, and this "
                "cannot change; start it as before, or choose another folder"
            )
    if last.settings.get("partition") != settings.partition:
        was = "with tables partitioned by" if last.settings.get("partition") else "without"
        raise SettingsError(
            f"{path} began {was} {last.settings.get('partition') or 'partitions'}, and this cannot "
            "change; start it as before, or choose another folder"
        )
    if declared is not None:
        try:
            Schema.from_dict(last.schema).grow(declared)
        except SettingsError as error:
            raise SettingsError(
                f"{path} began with the schema {Schema.from_dict(last.schema)}, and only new "
                f"attributes may come to it: {error}"
            ) from None
