"""How a stream is run: what the user chooses, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from stentor.errors import SettingsError
from stentor.index.catalog import index_class, structure_of
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

PlanName = Literal["auto", "replicated", "sharded"]

#: Above so many subscriptions a plan that nobody chose becomes sharded, in shards of this size.
REPLICATED_MOST = 20_000_000


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """The settings of a stream; those of records and time are fixed by its first batch."""

    index: str = "auto"
    top: int | None = None
    """Deliver an event to its k best subscriptions only."""
    plan: PlanName = "auto"
    shards: int | None = None
    """Of the sharded plan; by default as many as tasks can run at a time."""
    has_order: bool = False
    """Whether records say where they stand in the order."""
    has_time: bool = False
    """Whether records say when they happened; else the batch's own time serves."""
    keeps_events: bool = True
    """Whether events may stay live; follows from the frames."""
    limits: RecordLimits = DEFAULT_RECORD_LIMITS
    most_ahead: timedelta | None = None
    """How far a record's time may be ahead of the batch's own: one wrong clock would end all that
    is live. None: any."""
    most_rejected: float | None = None
    """The share of rejected records at which the stream stops."""
    retention: timedelta = timedelta(days=7)
    """How long files that a newer version of a table has replaced are kept for its readers."""
    few_changes: int = 5_000
    """So many changes of a batch are settled on the driver, more of them by the workers."""
    merge_share: float = 0.2
    """A new base is built when changes pass this share of the subscriptions …"""
    merge_least: int = 10_000
    """… and this many."""
    fold_after: int = 16
    """So many segments of changes, or of live events, are made into one."""
    compact_after: int = 32
    """So many batches lie between two looks at a table's small files."""
    keep_manifests: int = 100
    local_cache: str | None = None
    """A folder on each worker's own disk into which bases are copied; None: they are mapped from
    the pipeline's folder."""

    def __post_init__(self) -> None:
        index_class(self.index)
        for name in ("top", "shards", "few_changes", "fold_after", "compact_after", "merge_least"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise SettingsError(f"{name} is {value!r}; expected a whole number of at least 1")
        if self.plan not in get_args(PlanName):
            raise SettingsError(
                f"plan is {self.plan!r}; expected one of {', '.join(get_args(PlanName))}"
            )
        if self.plan == "replicated" and self.shards not in (None, 1):
            raise SettingsError("a replicated plan has one shard; choose plan='sharded'")
        if self.most_rejected is not None and not 0 <= self.most_rejected <= 1:
            raise SettingsError(f"most_rejected is {self.most_rejected}; expected a share, 0 to 1")

    @property
    def structure(self) -> str:
        """The name of the structure that is built."""
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
