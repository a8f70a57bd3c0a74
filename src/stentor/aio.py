"""`stentor.aio.Engine`: an engine for asyncio. The same calls, awaited; the loop goes on meanwhile.

    await publish ─▶ inbox ─▶ one owner thread: the calls of a moment in one batch ─▶ answers

One thread owns the engine, so that nothing waits for a lock in the loop, and calls happen in the
order in which they were made. Large tables are cut, so that the loop gets its turn in between.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, Self, cast

import numpy as np
import pyarrow as pa

from stentor import engine as engines
from stentor.engine.calls import TOGETHER, Call, answer_together
from stentor.engine.inbox import Inbox
from stentor.engine.report import Answer, Report
from stentor.engine.safe_region import SafeRegion
from stentor.errors import SettingsError, StentorError

__all__ = ["AsyncEngine", "Engine", "JoinedReport"]

#: Calls of one batch, and answers that the loop is given at once.
MOST_TOGETHER: Final = 1_000
ANSWERED_AT_ONCE: Final = 200
#: Rows of a table that are dealt with before the loop may have its turn for sure.
ROWS_AT_ONCE: Final = 4_096
_TABLES: Final = frozenset(
    (
        *("publish_batch", "update_batch", "withdraw_batch"),
        *("subscribe_batch", "move_batch", "unsubscribe_batch", "step"),
    )
)
_Waiting = tuple[Call, "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class AsyncEngine:
    """`stentor.Engine` with methods that are awaited.

    The settings are those of `stentor.Engine`; *most_waiting* calls may wait for their turn, and
    more are refused with a StentorError. Any loop of any thread may call. Use it as `async with
    Engine() as engine`, or `await engine.close()` in the end.
    """

    def __init__(
        self,
        *args: Any,
        most_waiting: int = 100_000,
        engine: engines.Engine | None = None,
        **settings: Any,
    ) -> None:
        if engine is not None and (args or settings):
            raise SettingsError("an engine that is given has its settings already")
        self.engine = engines.Engine(*args, **settings) if engine is None else engine
        self._inbox: Inbox[_Waiting] = Inbox(most_waiting)
        self._thread = threading.Thread(target=self._main, name="stentor-engine", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, path: Any, *, most_waiting: int = 100_000, **settings: Any) -> Self:
        """`stentor.Engine.open`; with `durable=True` calls of one moment share one commit."""
        opened = await asyncio.to_thread(engines.Engine.open, path, **settings)
        return cls(engine=opened, most_waiting=most_waiting)

    async def close(self) -> None:
        """Let what waits be answered, and let go of the thread and of files."""
        self._inbox.close()
        await asyncio.to_thread(self._thread.join)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # One record at a time: those of a moment are one batch.

    async def subscribe(self, id: str, expression: Any, **settings: Any) -> Any:
        """`Engine.subscribe`."""
        return await self._call("subscribe", id, expression, **settings)

    async def unsubscribe(self, id: str, **settings: Any) -> None:
        """`Engine.unsubscribe`."""
        await self._call("unsubscribe", id, **settings)

    async def move(self, id: str, at: Any, **settings: Any) -> Any:
        """`Engine.move`."""
        return await self._call("move", id, at, **settings)

    async def publish(self, event: Any, **settings: Any) -> Any:
        """`Engine.publish`."""
        return await self._call("publish", event, **settings)

    async def update(self, event: Any, **settings: Any) -> Any:
        """`Engine.update`."""
        return await self._call("update", event, **settings)

    async def withdraw(self, id: str, **settings: Any) -> list[str]:
        """`Engine.withdraw`."""
        found: list[str] = await self._call("withdraw", id, **settings)
        return found

    async def unsubscribe_all(self, *args: Any, **settings: Any) -> list[str]:
        """`Engine.unsubscribe_all`."""
        found: list[str] = await self._call("unsubscribe_all", *args, **settings)
        return found

    # Many records at a time: large tables are cut.

    async def step(self, records: Any, **settings: Any) -> Any:
        """`Engine.step`."""
        return await self._call("step", records, **settings)

    async def publish_batch(self, events: Any, **settings: Any) -> Any:
        """`Engine.publish_batch`."""
        return await self._call("publish_batch", events, **settings)

    async def update_batch(self, events: Any, **settings: Any) -> Any:
        """`Engine.update_batch`."""
        return await self._call("update_batch", events, **settings)

    async def withdraw_batch(self, ids: Any) -> Any:
        """`Engine.withdraw_batch`."""
        return await self._call("withdraw_batch", ids)

    async def subscribe_batch(self, subscriptions: Any, expression: str | None = None) -> Any:
        """`Engine.subscribe_batch`."""
        return await self._call("subscribe_batch", subscriptions, expression)

    async def move_batch(self, moves: Any) -> Any:
        """`Engine.move_batch`."""
        return await self._call("move_batch", moves)

    async def unsubscribe_batch(self, ids: Any) -> Any:
        """`Engine.unsubscribe_batch`."""
        return await self._call("unsubscribe_batch", ids)

    # Questions, and keeping it.

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in _QUESTIONS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

        async def ask(*args: Any, **settings: Any) -> Any:
            return await self._call(name, *args, **settings)

        ask.__name__, ask.__doc__ = name, f"`Engine.{name}`."
        return ask

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_QUESTIONS]

    async def contains(self, id: str) -> bool:
        """Whether the subscription *id* is there: `id in engine`."""
        return bool(await self._call("__contains__", id))

    async def count(self) -> int:
        """How many subscriptions there are: `len(engine)`."""
        return int(await self._call("__len__"))

    def __repr__(self) -> str:
        return f"<aio of {self.engine!r}>"

    # In the loop.

    async def _call(self, method: str, *args: Any, **settings: Any) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        if not self._inbox.put((Call(method, args, settings), answer, loop)):
            if self._inbox.is_closed:
                raise StentorError("this engine was closed")
            raise StentorError("too many calls wait for this engine; await some of them first")
        return await answer

    # In the thread.

    def _main(self) -> None:
        while True:
            waiting = self._inbox.take(MOST_TOGETHER)
            if not waiting:
                if self._inbox.is_closed and not self._inbox.size:
                    self.engine.close()
                    return
                continue
            start = 0
            while start < len(waiting):
                stop = start
                while stop < len(waiting) and waiting[stop][0].method in TOGETHER:
                    stop += 1
                self._answer(waiting[start : max(stop, start + 1)])
                start = max(stop, start + 1)

    def _answer(self, waiting: list[_Waiting]) -> None:
        """Let some calls happen, and hand their answers to their loops."""
        calls = [call for call, _, _ in waiting]
        answers: list[Any]
        # A full collection holds Python's lock for as long as the program is large: not meanwhile.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            if len(calls) > 1:
                answers = answer_together(self.engine, calls)
            else:
                answers = [self._one(calls[0])]
        except BaseException as error:  # noqa: BLE001 – raised where it is awaited
            answers = [error] * len(calls)
        finally:
            if was_enabled:
                gc.enable()
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for (_, future, loop), answer in zip(waiting, answers, strict=True):
            by_loop.setdefault(loop, []).append((future, answer))
        for loop, answered in by_loop.items():
            for start in range(0, len(answered), ANSWERED_AT_ONCE):
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    part = answered[start : start + ANSWERED_AT_ONCE]
                    loop.call_soon_threadsafe(_hand_over, part)

    def _one(self, call: Call) -> Any:
        method = getattr(self.engine, call.method)
        if call.method not in _TABLES or not call.args:
            return method(*call.args, **call.settings)
        records, *others = call.args
        reports = [method(part, *others, **call.settings) for part in _cut(records)]
        return reports[0] if len(reports) == 1 else JoinedReport(reports)


#: As users know it.
Engine = AsyncEngine
#: Asked as they are, each by itself.
_QUESTIONS: Final = frozenset(
    (
        *("top", "explain", "why_not", "why_not_counts", "redundant", "safe_region"),
        *(
            "safe_regions",
            "shrunk_by",
            "get",
            "alternatives",
            "subscriptions",
            "live",
            "event",
            "stats",
        ),
        *("save", "rebuild"),
    )
)


def _hand_over(answered: Iterable[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in answered:
        if future.done():  # whoever awaited it has gone
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _cut(records: Any) -> list[Any]:
    """*records* in parts of at most ROWS_AT_ONCE, in order; at least one."""
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        return [records]  # which is refused
    if not hasattr(records, "__len__"):
        records = list(records)
    if len(records) <= ROWS_AT_ONCE:
        return [records]
    starts = range(0, len(records), ROWS_AT_ONCE)
    if hasattr(records, "slice"):  # Arrow
        return [records.slice(start, ROWS_AT_ONCE) for start in starts]
    rows = records.iloc if hasattr(records, "iloc") else records
    return [rows[start : start + ROWS_AT_ONCE] for start in starts]


class JoinedReport(Sequence[Answer]):
    """The reports of a batch that was cut, as one: what `Report` has."""

    def __init__(self, parts: list[Report]) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(len(part) for part in parts)]).tolist()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, record: Any) -> Any:
        if isinstance(record, slice):
            return [self[one] for one in range(*record.indices(len(self)))]
        record = range(len(self))[record]
        part = int(np.searchsorted(self._starts, record, side="right")) - 1
        return self._parts[part][record - self._starts[part]]

    @cached_property
    def matches(self) -> Any:
        """`Report.matches`."""
        return self._table("matches")

    @cached_property
    def changes(self) -> Any:
        """`Report.changes`."""
        return self._table("changes")

    @cached_property
    def stayed(self) -> Any:
        """`Report.stayed`."""
        return self._table("stayed")

    @cached_property
    def rejected(self) -> Any:
        """`Report.rejected`."""
        return self._table("rejected")

    @property
    def never(self) -> list[int]:
        """`Report.never`."""
        return [start + one for start, part in self._by_start() for one in part.never]

    @property
    def shrunk(self) -> list[tuple[int, SafeRegion]]:
        """`Report.shrunk`."""
        return [(start + at, one) for start, part in self._by_start() for at, one in part.shrunk]

    @property
    def candidates(self) -> Any:
        """`Report.candidates`."""
        found = [part.candidates for part in self._parts]
        return None if any(one is None for one in found) else np.concatenate(cast("Any", found))

    def _by_start(self) -> Iterable[tuple[int, Report]]:
        return zip(self._starts, self._parts, strict=False)

    def _table(self, name: str) -> Any:
        tables = []
        for start, part in self._by_start():
            table = getattr(part, name)
            record = pa.array(table["record"].to_numpy() + start)
            tables.append(table.set_column(0, "record", record))
        return pa.concat_tables(tables)
