"""Micro-batches of a thousand events and a hundred changes, one after the other."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from stentor_lab.bench.spark.feed import Commit, Feed
from stentor_lab.bench.spark.messages import EVENTS, Messages
from stentor_lab.bench.spark.scale import Bench
from stentor_lab.result import Row, Table, Unit

#: Batches in each part of the run that is looked at by itself.
PART: Final = 100
#: What tasks tell of themselves; all other steps are what the driver waits for, in turn.
_OF_TASKS: Final = "tasks "


def micro_batches(bench: Bench, messages: Messages) -> Table:
    """Milliseconds from commit to commit while files wait, and whether they stay the same."""
    one = messages.events(1, "message")
    batches = list(messages.micro_batches())
    spark = bench.sessions.of(2)
    least = min(10_000, bench.subscriptions // 2)
    with Feed(spark, bench.folder / "latency", one, merge_least=least) as feed:
        bench.progress(f"building the base of {bench.subscriptions:,} subscriptions")
        built = feed.subscribe(messages.base, one)
        for events, changes in batches:
            feed.give("changes", changes)
            feed.give("events", events)
        commits = []
        for commit in feed.commits():
            commits.append(commit)
            if len(commits) % PART == 0:
                bench.progress(f"micro-batch {len(commits)} of {len(batches)}")
    counted = list(pairwise(commits))[messages.warm - 1 :]
    workload = {
        **messages.workload,
        "subscriptions": bench.subscriptions,
        "events": EVENTS,
        "changes": messages.changes,
        "base built from texts in": f"{built:.0f} s",
        "left out": f"the first {messages.warm}",
    }
    part = min(PART, len(counted) // 3)
    middle = (len(counted) - part) // 2
    rows = (
        _row(f"first {part}", counted[:part]),
        _row(f"middle {part}", counted[middle : middle + part]),
        _row(f"last {part}", counted[-part:]),
        _row(f"all {len(counted)}", counted),
    )
    title = f"Micro-batches of {EVENTS:,} events and {messages.changes} changes, 2 task slots"
    return Table(title, workload, "micro-batch", Unit.MILLISECONDS, rows)


def _row(name: str, counted: list[tuple[Commit, Commit]]) -> Row:
    """Batches with the commit before each; medians of what each step took, in milliseconds."""
    seconds = tuple(after.clock - before.clock for before, after in counted)
    batches = [after.progress for _, after in counted]
    named = dict.fromkeys(step for one in batches for step in one.steps)
    steps = [step for step in named if not step.startswith(_OF_TASKS)]
    in_steps = np.array([[one.steps.get(step, 0.0) for step in steps] for one in batches])
    own = np.array([one.seconds for one in batches])
    parts = {
        **dict(zip(steps, in_steps.T, strict=True)),
        "commit": own - in_steps.sum(axis=1),
        "Spark's own": np.array(seconds) - own,
    }
    shown = {step: 1e3 * float(np.median(values)) for step, values in parts.items()}
    return Row(name, seconds, {"95 %": 1e3 * float(np.percentile(seconds, 95)), **shown})
