"""The thread that owns the broker: it takes its inbox in batches, commits once, then answers.

    put ─▶ inbox (bounded) ─▶ batch of a millisecond or two ─▶ core.run ─▶ replies and deliveries

Questions run between two batches, in the order in which they came.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from stentor.engine.inbox import Inbox
from stentor.errors import StentorError, StoreError
from stentor.service.core import Core
from stentor.service.outbox import Key
from stentor.service.records import CoreOutput, Records, RecordsAnswer
from stentor.service.refusals import RefusedError
from stentor.service.settings import ServeSettings

_LOG: Final = logging.getLogger("stentor.service")
#: Records of one commit.
MOST_RECORDS: Final = 4_000


@dataclass(slots=True)
class Question:
    """A function of the core, and what takes its answer or its error."""

    ask: Callable[[Core], Any]
    reply: Callable[[Any], None]


Command = Records | Question | tuple[Key, int]


class Owner:
    """Runs a `Core` in a thread of its own; *on_output* is called there after each commit."""

    def __init__(
        self,
        settings: ServeSettings,
        on_output: Callable[[CoreOutput, list[tuple[Callable[[Any], None], Any]]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self._on_output = on_output
        self._clock = clock
        self._inbox: Inbox[Command] = Inbox(settings.limits.inbox)
        self._failure: StentorError | None = None
        self.latencies: deque[float] = deque(maxlen=5_000)
        self.core: Core | None = None
        self.thread = threading.Thread(target=self._main, name="stentor-owner", daemon=True)
        self._opened = threading.Event()
        self._open_error: BaseException | None = None

    # From any thread.

    def start(self) -> None:
        """Open the store, in the thread; what is wrong with it is raised here."""
        self.thread.start()
        self._opened.wait()
        if self._open_error is not None:
            raise self._open_error

    def put(self, command: Command, size: int = 1) -> None:
        """Let *command* wait for its turn; a RefusedError where too many do."""
        if not self._inbox.put(command, size):
            if self._inbox.is_closed:
                raise RefusedError(503, "not_ready", "the server stops", retry_after=1)
            raise RefusedError(503, "full", "the server's inbox is full", retry_after=1)

    @property
    def waiting(self) -> int:
        """Records and questions that wait for their turn."""
        return self._inbox.size

    @property
    def failure(self) -> str:
        """Why nothing can be kept now; empty where it can."""
        return "" if self._failure is None else str(self._failure)

    def stop(self) -> None:
        """Let what waits happen, then let go of the store."""
        self._inbox.close()
        self.thread.join()

    # In the thread.

    def _main(self) -> None:
        try:
            self.core = _core(self.settings, self._clock)
        except BaseException as error:  # noqa: BLE001 – raised in the thread that starts it
            self._open_error = error
            return
        finally:
            self._opened.set()
        next_tick = 0.0
        try:
            while True:
                batch = self._inbox.take(MOST_RECORDS, self.core.tick_seconds)
                if batch:
                    self._run(batch)
                elif self._inbox.is_closed and not self._inbox.size:
                    return
                if time.monotonic() >= next_tick:
                    next_tick = time.monotonic() + self.core.tick_seconds
                    self._guarded(self.core.tick)
                    self._on_output(self.core.taken(), [])
        finally:
            with suppress(StentorError):
                self.core.close()

    def _run(self, batch: list[Command]) -> None:
        """Let a batch happen; a question waits until what came before it is kept."""
        commands: list[Records] = []
        acknowledged: dict[Key, int] = {}
        for one in batch:
            if isinstance(one, Records):
                commands.append(one)
            elif isinstance(one, Question):
                self._commit(commands, acknowledged)
                commands, acknowledged = [], {}
                self._ask(one)
            else:
                key, seq = one
                acknowledged[key] = max(seq, acknowledged.get(key, 0))
        self._commit(commands, acknowledged)

    def _commit(self, commands: list[Records], acknowledged: dict[Key, int]) -> None:
        if not commands and not acknowledged:
            return
        core = self._usable_core()
        output = None
        if core is not None:
            output = self._guarded(lambda: core.run(commands, acknowledged))
        replies: list[tuple[Callable[[Any], None], Any]] = []
        if output is None:
            output = CoreOutput([self._refused(command) for command in commands])
        now = time.perf_counter()
        for command, answer in zip(commands, output.answers, strict=True):
            if command.arrived:
                self.latencies.append(now - command.arrived)
            if command.reply is not None:
                replies.append((command.reply, answer))
        self._on_output(output, replies)

    def _refused(self, command: Records) -> RecordsAnswer:
        error = self._failure or StoreError("the store has failed")
        return RecordsAnswer(errors=[(position, error) for position in range(len(command.raws))])

    def _ask(self, question: Question) -> None:
        core = self._usable_core()
        answer: Any
        try:
            if core is None:
                raise self._failure or StoreError("the store has failed")
            answer = question.ask(core)
        except StentorError as error:
            answer = error
        except Exception as error:  # noqa: BLE001 – a defect is an answer, and is logged
            _LOG.exception("a question failed")
            answer = RefusedError(500, "defect", f"a defect of Stentor: {type(error).__name__}")
        if isinstance(answer, StoreError):
            self._failure = self._failure or answer
        output = CoreOutput() if core is None else core.taken()
        self._on_output(output, [(question.reply, answer)])

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """What *step* gives; None where it fails, and then the store is opened again later."""
        try:
            return step()
        except StentorError as error:
            _LOG.exception("the store has failed; it is opened again")
            self._failure = error
        except Exception as error:  # noqa: BLE001 – what was not kept is refused, and logged
            _LOG.exception("a batch failed; the store is opened again")
            self._failure = StoreError(f"a batch failed: {type(error).__name__}: {error}")
        return None

    def _usable_core(self) -> Core | None:
        """The core, opened again where it has failed; None where that fails too."""
        core = self.core
        if self._failure is None or core is None:
            return core
        try:
            core.reopen()
        except StentorError as error:
            _LOG.error("the store cannot be opened again: %s", error)
            self._failure = error
            return None
        self._failure = None
        self._on_output(CoreOutput(is_reopened=True), [])
        return core


def _core(settings: ServeSettings, clock: Callable[[], float]) -> Core:
    """What matches: a broker here, or the stream whose door this is."""
    if settings.pipeline is None:
        return Core(settings, clock)
    from stentor.service.door import DoorCore

    return DoorCore(settings, clock)
