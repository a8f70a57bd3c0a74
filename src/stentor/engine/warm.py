"""Compiling ahead: a small engine that does everything once, so that every kernel is compiled.

What it does is all that matters, not what it answers. A structure's settings are such that a few
dozen subscriptions split its nodes.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa

from stentor._jit import cache_folder, is_compiled, note_compiled
from stentor.engine.cold import COVERING, WAIT, packages_of
from stentor.engine.engine import Engine
from stentor.errors import NeverMatchesWarning, SettingsError
from stentor.index.catalog import structures
from stentor.index.storage.folders import locked

#: Settings with which few subscriptions reach what takes thousands otherwise.
_SETTINGS = {
    "ap_tree": ["", "fanout=4 leaf=2"],
    "be_star_tree": ["", "capacity=2 window=2"],
    "packed": ["", "pending=1 foreground=2 fan_in=2"],
}
_SCHEMA = {
    "price": "number",
    "size": "number",
    "brand": "string",
    "text": "string",
    "loc": "point",
    "made": "timestamp",
}
_SECONDS_BETWEEN = 0.2  # looks at whether another process is done
#: Seconds that a child goes on after the process that started it, where the environment has none.
LINGERING: Final = 300.0
#: In the environment: other seconds; 0 ends it at once.
LINGER: Final = "STENTOR_LINGER"
_GRACE = 10.0  # seconds until a process that ought to end does so without tidying up
_NICE = 10
_NEAR = "ST_DWithin(loc, here(), {metres})"
_EXPRESSIONS = [
    "price < {number}",
    "price BETWEEN {number} AND {metres} AND size >= {small}",
    "price != {number} AND size IN (1, {small})",
    "price BETWEEN {small} AND {number} AND size BETWEEN 1 AND {small}",
    "brand = 'maker{small}' AND price > {small}",
    "brand IN ('maker1', 'maker{small}') OR size < {small}",
    "brand NOT IN ('maker2', 'other') AND NOT has_any(text, 'used', 'broken')",
    "brand LIKE 'mak%{small}' AND price < {metres}",
    "NOT brand LIKE '%k_r%' OR price IS NULL",
    "brand >= 'm' AND brand < 'n{small}'",
    "has_all(text, 'word{small}')",
    "has_all(text, 'word{small}', 'sale') AND price < {number}",
    "has_all(text, 'sale') AND " + _NEAR,
    "has_any(text, 'word{small}', 'jazz') AND size IS NOT NULL",
    "weight(has_all(text, 'sale'), 2) AND weight(price < {number}, 0.5)",
    _NEAR,
    "NOT ST_DWithin(loc, ST_Point({small}, 1), 1000) AND price > {small}",
    "ST_DWithin(loc, ST_Point({small}, 1), 100000) AND has_all(text, 'word{small}')",
    "ST_Within(loc, ST_MakeEnvelope(0, 0, {small}, 5)) AND price < {number} AND size > 1",
    "ST_Within(loc, ST_GeomFromText('POLYGON((0 0, 9 0, {small} 9, 0 0))')) AND price < {metres}",
    "NOT ST_Within(loc, ST_MakeEnvelope(0, 0, {small}, 5))",
    "made < TIMESTAMP '2030-01-01' AND price < {number}",
    "price < 1 AND price > 2",
]


def warmable() -> list[str]:
    """What can be compiled ahead: each structure, and covering."""
    return [*structures(), COVERING]


def compile_kernels(name: str, announce: Callable[[str], None] = lambda stage: None) -> None:
    """Compile all kernels of *name*, or load them; *announce* is called with each stage."""
    if name not in warmable():
        raise SettingsError(f"nothing to compile for {name!r}; there are {', '.join(warmable())}")
    os.environ[WAIT] = "1"  # or the engine below would answer without compiling
    with warnings.catch_warnings(category=NeverMatchesWarning, action="ignore"):
        for stage in _stages(name):
            announce(stage)
    note_compiled(*packages_of(name))


def compile_once(
    name: str,
    announce: Callable[[str], None] = lambda stage: None,
    is_awaited: Callable[[], bool] = lambda: True,
) -> None:
    """`compile_kernels`, unless it was done.

    Where another process is at it, wait for that one, as long as this *is_awaited*.
    """
    folder = cache_folder()
    if folder is None:
        compile_kernels(name, announce)
    while folder is not None and not is_compiled(*packages_of(name)):
        try:
            with locked(folder / f"{name}.lock"):
                compile_kernels(name, announce)
            return
        except BlockingIOError:
            if not is_awaited():
                return
            time.sleep(_SECONDS_BETWEEN)


def _stages(name: str) -> Iterator[str]:
    if name == COVERING:
        engine = _filled("scan")
        yield "subscriptions"
        engine.redundant()
        yield "relations"
        return
    for settings in _SETTINGS.get(name, [""]):
        for form in ("", "layered"):
            index = " ".join(f"{name} {settings} {form}".split())
            for stage in _lived(index):
                yield f"{index}: {stage}"


def _lived(index: str) -> Iterator[str]:
    """Everything that an engine can do, with *index*."""
    engine = _filled(index)
    yield "subscribe"
    engine.publish(_event(0))
    engine.publish_batch(_events())
    yield "publish"
    for scoring in ("sum", "max"):
        engine.top(_event(0), k=3, scoring=scoring)
        engine.publish_batch(_events(), top=2, scoring=scoring)
    yield "top"
    _live(engine)
    yield "live events"
    engine.rebuild(_events())
    _live(engine)
    yield "rebuild"
    with TemporaryDirectory(prefix="stentor-warm-") as folder:
        engine.save(Path(folder, "engine"))
        for verify in (True, False):
            opened = Engine.open(Path(folder, "engine"), verify=verify, clock=None)
            opened.publish(_event(1))
            opened.publish_batch(_events())
            opened.publish_batch(_events(), top=2)
            _live(opened)
            opened.rebuild()
            del opened  # or Windows could not remove what is mapped
    yield "save and open"


def _live(engine: Engine) -> None:
    """Live events and moving subscribers; more of them than the last time."""
    now = engine.stats()["records"] * 10
    soon = now + 5_000
    for number in range(6):
        engine.publish({**_event(number), "id": f"live{now}-{number}"}, until=soon, time=now)
    engine.move("walker", (0.5, 0.5), time=now)
    regions = engine.safe_regions(["walker"])
    engine.shrunk_by(_event(0), regions)
    engine.publish({**_event(0), "id": f"near{now}"}, until=soon, time=now)
    engine.move_batch(pa.table({"id": ["walker", "s15"], "at": [[0.1, 0.2], [1.0, 1.0]]}))
    engine.subscribe("walker", "has_all(text, 'sale') AND " + _NEAR.format(metres=900), at=(0, 0))
    engine.step(
        [
            {"op": "publish", **_event(3), "id": f"step{now}", "until": soon},
            {"op": "subscribe", "id": "new", "expression": "price < 9 OR size > 2"},
            {"op": "move", "id": "walker", "at": [1, 1]},
            {"op": "publish", **_event(4)},
            {"op": "unsubscribe", "id": "new"},
        ]
    )
    for number in range(2):
        engine.update({**_event(number), "id": f"up{now}"}, until=soon)
    engine.withdraw(f"up{now}")
    engine.subscribe("labelled", "price < 99", labels={"tenant": "acme"})
    engine.publish(_event(1), among={"tenant": "acme"})
    engine.publish_batch([_event(2)], top=1)
    engine.unsubscribe("s7")
    engine.subscribe("s7", "price < 7")
    engine.publish(_event(5), time=soon + 1)  # all that was live is over


def _filled(index: str) -> Engine:
    engine = Engine(index, schema=_SCHEMA, clock=None, most_ahead=None)
    count = 6 * len(_EXPRESSIONS)
    texts = [
        _EXPRESSIONS[row % len(_EXPRESSIONS)].format(
            number=10 + 7 * row, small=2 + row % 7, metres=1000 + 100 * row
        )
        for row in range(count)
    ]
    locations = [[row % 10 / 10, row % 7 / 10] for row in range(count)]
    ids = [f"s{row}" for row in range(count)]
    engine.subscribe_batch(pa.table({"id": ids, "expression": texts, "at": locations}))
    constants = {"id": ["c1", "c2"], "word": ["jazz", "tea"], "most": [3, 4], "at": locations[:2]}
    engine.subscribe_batch(
        pa.table(constants), "has_all(text, :word) AND ST_DWithin(loc, here(), :most)"
    )
    engine.subscribe("walker", _NEAR.format(metres=70_000), at=(0, 0))
    return engine


def _event(number: int) -> dict[str, Any]:
    event: dict[str, Any] = {
        "id": f"e{number}",
        "price": 5 + 11 * number,
        "size": {"low": 1, "high": 2} if number % 3 == 2 else number % 4,
        "brand": f"maker{number % 5}",
        "text": f"Sale of word{number % 7}, ümlaut",
        "loc": [number % 10 / 10, number % 7 / 10],
        "made": "2026-01-01T00:00:00Z",
    }
    return {**event, "weights": {"price": 2.0}} if number % 2 else event


def _events() -> Any:
    rows = [_event(number) for number in range(60) if number % 3 != 2]
    return pa.table({name: [row[name] for row in rows] for name in _event(0)})


def main() -> None:
    """Compile what the arguments name; for a process that another one has started.

    It says each stage on standard output. When its standard input ends, the other process has
    ended, however that came. Then it goes on alone, so that the next process finds kernels:
    silently, at low priority, unless yet another process is at the same, and for `LINGERING`
    seconds at most; each kernel is kept as soon as it is compiled.
    """
    is_left = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # temporary folders are removed
    threading.Thread(target=_outlive, args=(is_left,), daemon=True).start()
    for name in sys.argv[1:]:
        compile_once(name, _say, lambda: not is_left.is_set())


def _say(stage: str) -> None:
    with suppress(OSError):  # nobody listens any more
        os.write(1, f"{stage}\n".encode())


def _outlive(is_left: threading.Event) -> None:
    """Wait for the end of the process that started this one; then end this one in time."""
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    is_left.set()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PGRP, 0, _NICE)  # all threads; the group is this process's own
    folder = cache_folder()
    if folder is not None and folder.is_absolute():
        os.chdir(folder.anchor)  # or the folder it was started in could not be unmounted
    time.sleep(_seconds_left())
    _thread.interrupt_main(signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)


def _seconds_left() -> float:
    """How long to go on alone: at most a day."""
    with suppress(ValueError):
        return min(max(0.0, float(os.environ.get(LINGER) or LINGERING)), 86_400.0)
    return LINGERING
