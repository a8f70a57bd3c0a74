"""What a stream will do and why, in plain words; nothing here starts Java.

`explanation` gives a title and a text for each subject, `mistakes` what would keep the stream from
starting and can be seen from here.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Final

from stentor.errors import StentorError
from stentor.model import Schema
from stentor.model.values.time import BEGINNING, format_timestamp
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.config.file import StreamConfig
from stentor.pipeline.secrets import secret_mistakes
from stentor.pipeline.sources import SourceSettings, source_named
from stentor.pipeline.spark.java import MISSING, find_java
from stentor.pipeline.stream.settings import REPLICATED_MOST, StreamSettings, check_unchanged

_UNITS: Final = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
)


def explanation(config: StreamConfig, slots: int | None = None) -> list[tuple[str, str]]:
    """Each subject and what there is to say about it; *slots* is how many tasks run at a time."""
    last = Commits(config.folder).last()
    settings = config.settings
    subjects = [
        ("Sources", "\n".join(map(_source, config.sources))),
        ("Schema", _schema(config, last)),
        ("Order", _order(config)),
        ("Time", _time(config)),
        ("Batches", _batches(config)),
        ("Index", _index(settings, last)),
        ("Plan", _plan(settings, last, slots or os.cpu_count() or 1)),
        ("Deliveries", _deliveries(settings)),
        ("Tables", _tables(config, last)),
        ("Checkpoint", _checkpoint(config)),
        ("Bad records", _bad_records(settings)),
        ("Merging", _merging(settings)),
        ("Retention", _retention(settings)),
    ]
    if config.kafka is not None:
        out = config.kafka
        text = (
            f"deliveries also go to the topic {out.topic!r} on {out.servers}, at least once: a "
            "batch is sent after it is committed, so after a crash one may be sent twice, with "
            "equal keys (event/subscription/change/seq)"
        )
        subjects.append(("Kafka out", text))
    return subjects


def mistakes(config: StreamConfig) -> list[str]:
    """What is wrong with the world that *config* is to run in, a sentence each."""
    found = [] if find_java() is not None else [MISSING]
    for source in config.sources:
        own = source_named(source.format)
        found += own.mistakes(source, is_inferred=config.kinds is None)
        found += [f"{source.name}, options, {one}" for one in secret_mistakes(source.options)]
    if config.kafka is not None:
        found += [f"[kafka], options, {one}" for one in secret_mistakes(config.kafka.options)]
    found += [f"[storage], {one}" for one in secret_mistakes(config.settings.storage)]
    if isinstance(config.path, Path) and config.path.exists() and not config.path.is_dir():
        found.append(f"[tables], path: {config.path} is a file; expected a folder, or none yet")
        return found
    try:
        last = Commits(config.folder).last()
        if last is not None:
            check_unchanged(last, config.path, config.settings, config.schema)
    except StentorError as error:
        found.append(f"[tables], path: {error}")
    return found


def _source(source: SourceSettings) -> str:
    own = source_named(source.format)
    text = f"{source.kind} from {own.title}, {own.where(source)}"
    most = source.max_files or source.max_records
    if most is not None:
        text += f", at most {_count(most, 'file' if source.max_files else 'record')} a batch"
    return text


def _schema(config: StreamConfig, last: Manifest | None) -> str:
    if config.kinds is not None:
        named = ", ".join(f"{name} ({kind})" for name, kind in config.kinds.items())
        return f"declared: {named}; other attributes of events are not looked at"
    if last is not None:
        schema = Schema.from_dict(last.schema)
        named = ", ".join(f"{name} ({schema.kind(name)})" for name in schema)
        return f"inferred when the pipeline began, and committed: {named}"
    return (
        "inferred once, from the first records that are there, and committed with the first "
        "batch; declare it in [schema] to be sure"
    )


def _order(config: StreamConfig) -> str:
    if not config.settings.has_order:
        return (
            "none named: in each batch the changes come before the events, so where batches are "
            "cut matters; name a column in [order], by, and it does not"
        )
    names = _named({one.columns.order for one in config.sources})
    return (
        f"by {names}: an event meets exactly the changes before it, however the batches are cut, "
        "as if one engine had been fed record by record, if no two records have one place; "
        f"{_waiting(config)}a record that comes after its place is committed is rejected as late"
    )


def _waiting(config: StreamConfig) -> str:
    """How sources wait for one another."""
    settings = config.settings
    lanes = len(config.sources) > 1 or source_named(config.sources[0].format).has_lanes
    if not lanes and not settings.lateness_units:
        return ""
    text = "a batch goes only as far as its slowest source has come"
    if settings.lateness_units:
        given = settings.lateness
        shown = _span(given) if isinstance(given, timedelta) else f"{given:,}"
        text += f", less a lateness of {shown}"
    return f"{text}, one that brings nothing for {_span(settings.idle)} is not waited for; "


def _time(config: StreamConfig) -> str:
    if not config.settings.has_time:
        return (
            "that of the batch, which Spark keeps, so that a repeated batch sees the same; name a "
            "column in [order], time, if records say when they happened"
        )
    names = _named({one.columns.time for one in config.sources})
    text = f"{names} says when a record happened; the largest so far decides what is over"
    ahead = config.settings.most_ahead
    if ahead is None:
        return text
    return f"{text}; a record more than {_span(ahead)} ahead of its batch is rejected"


def _batches(config: StreamConfig) -> str:
    if config.trigger.get("availableNow"):
        return "what is there now, and then it ends"
    if "processingTime" in config.trigger:
        every = int(config.trigger["processingTime"].split()[0])
        return f"one every {_span(timedelta(milliseconds=every))}, until it is stopped"
    return "one after the other, as soon as records are there, until it is stopped"


def _index(settings: StreamSettings, last: Manifest | None) -> str:
    if not settings.is_auto:
        text = f"{settings.structure} (as you chose)"
        if last is not None and last.index != settings.structure:
            text += f"; it was {last.index}, so the subscriptions are filed anew first"
        return text
    later = "each new base chooses again, by what its subscriptions ask for"
    if last is None or not last.bases:
        return f"{settings.structure} until there is a base; {later}"
    if not last.why:
        return f"{last.index}, as it was before; {later}"
    return f"{last.index}, chosen because {last.why}; {later}"


def _plan(settings: StreamSettings, last: Manifest | None, slots: int) -> str:
    count = 0 if last is None else last.counts["subscriptions"]
    shards = settings.shard_count(count, slots, 1 if last is None else last.shards)
    subscriptions = _count(count, "subscription")
    if shards > 1:
        text = (
            f"sharded in {shards}: subscriptions are split by the hash of their ids, and each "
            "event visits every shard"
        )
    else:
        text = "replicated: each machine maps the whole index, and an event visits one worker"
    if settings.plan != "auto" or settings.shards is not None:
        why = "because you chose it"
    else:
        relation = "more" if shards > 1 else "no more"
        why = f"because {subscriptions} are {relation} than {REPLICATED_MOST:,}"
    text = f"{text}, {why}"
    if last is not None and last.shards != shards:
        text += f"; there were {last.shards} shards, so the subscriptions are filed anew first"
    if settings.local_cache is not None:
        text += f"; each machine maps its own copy, in {settings.local_cache}"
    return text


def _deliveries(settings: StreamSettings) -> str:
    rows = (
        "a row for each event and subscription that wants it, and for each live event that a "
        "change of a subscription adds or removes; exactly once"
    )
    if settings.top is None:
        return rows
    return f"{rows}; of an event only the {settings.top:,} best, with their scores"


def _tables(config: StreamConfig, last: Manifest | None) -> str:
    text = f"deliveries, rejected, subscriptions, events: Delta tables in {config.path / 'tables'}"
    if config.settings.partition is not None:
        text += ", partitioned by the day of their time (column 'date')"
    if last is None:
        return f"{text}; new"
    moment = "" if last.time == BEGINNING else f", logical time {format_timestamp(last.time)}"
    return (
        f"{text}; it goes on after batch {last.batch:,}: "
        f"{_count(last.counts['subscriptions'], 'subscription')}, "
        f"{_count(last.counts['live'], 'live event')}{moment}"
    )


def _checkpoint(config: StreamConfig) -> str:
    path = config.checkpoint or config.path / "checkpoint"
    return f"{path}: how far the sources are read; it and the tables belong together"


def _bad_records(settings: StreamSettings) -> str:
    text = "go to the table 'rejected', with reason, raw text, source and offset"
    if settings.most_rejected is None:
        return f"{text}; however many there are, the stream goes on"
    return f"{text}; the stream stops where more than {settings.most_rejected:.1%} are bad"


def _merging(settings: StreamSettings) -> str:
    return (
        f"a new base of the index is built beside the stream once {settings.merge_least:,} changes "
        f"and {settings.merge_share:.0%} of the subscriptions have come since the last; small "
        f"files are looked at every {_count(settings.compact_after, 'batch', 'batches')}"
    )


def _retention(settings: StreamSettings) -> str:
    text = (
        f"files that a newer version of a table replaced stay {_span(settings.retention)} for its "
        f"readers, and {_count(settings.keep_manifests, 'manifest')} at least"
    )
    kept = [f"{table} for {_span(span)}" for table, span in settings.keep.items()]
    return f"{text}; rows stay in {', in '.join(kept)}, else for good" if kept else text


def _named(columns: set[str | None]) -> str:
    names = sorted(name for name in columns if name is not None)
    return f"the column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _span(span: timedelta) -> str:
    for name, unit in _UNITS:
        if span >= unit and span % unit == timedelta(0):
            return _count(span // unit, name)
    return f"{span / timedelta(seconds=1):g} seconds"
