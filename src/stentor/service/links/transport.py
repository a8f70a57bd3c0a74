"""Sockets around links: tasks that dial the brokers of `[[links]]`, and a door for those who dial.

A connection has a task that reads and one that sends; both ask the thread that owns the broker,
one frame at a time. Whatever breaks is dialled again, later and later, with what was not kept.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidURI

from stentor.errors import StentorError
from stentor.service.auth import Gate, Principal
from stentor.service.core import Core
from stentor.service.hub import Hub
from stentor.service.links.frames import (
    PIECE,
    RESTARTED,
    Assembler,
    LinkRefusedError,
    pieces,
)
from stentor.service.links.session import LinkSession
from stentor.service.refusals import RefusedError
from stentor.service.settings import LinkSettings

_LOG: Final = logging.getLogger("stentor.service")
_FIRST_WAIT, _LAST_WAIT = 0.05, 2.0
#: Seconds between two looks whether senders are still held, and for a frame of the greeting.
_HELD: Final = 0.05
_PATIENCE: Final = 20.0
_UNAUTHORISED, _FORBIDDEN = 4401, 4403

Found = TypeVar("Found")
Send = Callable[[bytes], Awaitable[None]]
Receive = Callable[[], Awaitable[bytes]]


class Links:
    """The links of one service."""

    def __init__(self, hub: Hub, gate: Gate) -> None:
        self._hub, self._gate = hub, gate
        self._tasks: list[asyncio.Task[None]] = []
        self._open: set[asyncio.Event] = set()
        self._is_stopping = False

    async def start(self) -> None:
        """Dial whoever is to be dialled."""
        for link in self._hub.settings.links:
            self._tasks.append(asyncio.ensure_future(self._dial(link)))

    async def stop(self) -> None:
        """End all connections; what waits for neighbours is sent after the next start."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()
        for event in self._open:
            event.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Who dials.

    async def _dial(self, link: LinkSettings) -> None:
        wait = _FIRST_WAIT
        while not self._is_stopping:
            try:
                is_fine = await self._dialled(link)
                reason = "it ended"
            except LinkRefusedError as error:
                is_fine, reason = False, error.reason
            except ConnectionClosed as error:
                said = error.rcvd.reason if error.rcvd is not None else ""
                is_fine, reason = not said, said or "the connection broke"
            except (OSError, TimeoutError, InvalidHandshake, InvalidMessage, InvalidURI) as error:
                is_fine, reason = False, f"{type(error).__name__}: {error}"
            except StentorError as error:
                is_fine, reason = False, str(error)
            if not self._is_stopping:
                await self._take_note(link, reason)
            wait = _FIRST_WAIT if is_fine else min(wait * 2, _LAST_WAIT)
            await asyncio.sleep(wait * random.uniform(0.75, 1.25))

    async def _take_note(self, link: LinkSettings, reason: str) -> None:
        """Tell the operator why a link is not up."""

        def keep(core: Core) -> bool:
            is_news = core.links.refusals.get(link.url) != reason
            core.links.refusals[link.url] = reason
            return is_news

        with suppress(StentorError):
            if await self._hub.ask(keep):
                _LOG.warning("link %s: %s", link.url, reason)

    async def _dialled(self, link: LinkSettings) -> bool:
        """Whether the connection was open before it ended."""
        url = "ws" + link.url.removeprefix("http").removeprefix("ws").rstrip("/") + "/v1/link"
        headers = {}
        if link.key_file is not None:
            key = await asyncio.to_thread(Path(link.key_file).read_text, "utf-8")
            headers["Authorization"] = f"Bearer {key.strip()}"
        context = None
        if url.startswith("wss:"):
            context = await asyncio.to_thread(ssl.create_default_context, cafile=link.ca_file)

        def may(name: str) -> None:
            if link.broker not in (None, name):
                raise LinkRefusedError(
                    _FORBIDDEN, f"{link.url} is the broker {name!r}, not {link.broker!r}"
                )

        async with connect(
            url,
            additional_headers=headers,
            ssl=context,
            compression=None,
            max_size=2 * PIECE,
            open_timeout=_PATIENCE,
            proxy=None,
        ) as connection:

            async def receive() -> bytes:
                return await connection.recv(decode=False)

            run = _Run(self, is_dialler=True, may=may)
            try:
                await run(connection.send, receive)
            except LinkRefusedError as error:
                await connection.close(error.code, error.reason[:100])
                raise
            return run.was_open

    # Who is let in.

    async def accept(self, websocket: WebSocket) -> None:
        """Serve a broker that has dialled this one."""
        try:
            who = self._gate.admit(websocket.headers.get("authorization"))
            who.need("link")
        except RefusedError as error:
            await websocket.accept()
            await websocket.close(_UNAUTHORISED if error.status == 401 else _FORBIDDEN, str(error))
            return
        await websocket.accept()

        async def receive() -> bytes:
            return await websocket.receive_bytes()

        run = _Run(self, is_dialler=False, may=lambda name: self._check_name(who, name))
        try:
            await run(websocket.send_bytes, receive)
        except LinkRefusedError as error:
            with suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(error.code, error.reason[:100])
        except (WebSocketDisconnect, RuntimeError, KeyError, TimeoutError):
            pass
        except StentorError as error:
            with suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(RESTARTED, str(error)[:100])

    def _check_name(self, who: Principal, name: str) -> None:
        """A key of a link lets in the broker that it was made for, by its name."""
        if self._gate.is_closed and "admin" not in who.scopes and who.owner != name:
            raise LinkRefusedError(_FORBIDDEN, f"the key is for the broker {who.owner!r}")

    async def ask(self, question: Callable[[Core], Found]) -> Found:
        """What the core answers; where too much waits for its turn, later."""
        while True:
            try:
                return await self._hub.ask(question)
            except RefusedError as error:
                if error.kind != "full":
                    raise LinkRefusedError(1001, str(error)) from None
            await asyncio.sleep(_HELD)

    @property
    def hub(self) -> Hub:
        """The door to the core."""
        return self._hub

    @property
    def is_stopping(self) -> bool:
        """Whether no connection goes on."""
        return self._is_stopping

    def listen(self, neighbour: str, event: asyncio.Event) -> None:
        """Let *event* be set when something waits for *neighbour*."""
        self._hub.link_events[neighbour] = event
        self._open.add(event)

    def forget(self, neighbour: str, event: asyncio.Event) -> None:
        """Set *event* no more."""
        self._open.discard(event)
        if self._hub.link_events.get(neighbour) is event:
            del self._hub.link_events[neighbour]


class _Run:
    """One connection, from its first to its last frame."""

    def __init__(self, links: Links, *, is_dialler: bool, may: Callable[[str], None]) -> None:
        self._links, self._is_dialler, self._may = links, is_dialler, may
        self._session: LinkSession | None = None
        self._wake = asyncio.Event()
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()  # as many as there is credit for
        self.was_open = False

    async def __call__(self, send: Send, receive: Receive) -> None:
        """Run it; what ends it is raised."""

        def begin(core: Core) -> tuple[LinkSession, list[bytes]]:
            session = LinkSession(core.links, is_dialler=self._is_dialler, may=self._may)
            session.on_end = lambda: loop.call_soon_threadsafe(self._wake.set)
            return session, session.begin()

        loop = asyncio.get_running_loop()
        session, first = await self._links.ask(begin)
        self._session = session
        try:
            self._put(first)
            steps: list[Coroutine[Any, Any, None]] = [
                self._read(receive),
                self._look(),
                self._write(send),
            ]
            tasks = [asyncio.ensure_future(step) for step in steps]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._links.forget(session.neighbour, self._wake)
            with suppress(StentorError, LinkRefusedError):
                await self._links.ask(lambda core: session.end(1000, "the connection ended"))

    def _put(self, frames: list[bytes]) -> None:
        """Let *frames* go, in the order in which the core gave them."""
        for frame in frames:
            self._frames.put_nowait(frame)

    async def _write(self, send: Send) -> None:
        while True:
            for piece in pieces(await self._frames.get()):
                await send(piece)

    async def _read(self, receive: Receive) -> None:
        session = self._session
        assert session is not None
        assembler = Assembler()
        while True:
            patience = None if self.was_open else _PATIENCE
            frame = assembler.take(await asyncio.wait_for(receive(), patience))
            if frame is None:
                continue
            answers = await self._links.ask(lambda core, raw=frame: session.take(raw))  # type: ignore[misc]
            if session.is_open and not self.was_open:
                self.was_open = True
                self._links.listen(session.neighbour, self._wake)
                self._wake.set()
            self._put(answers)
            if session.is_waiting:
                self._wake.set()

    async def _look(self) -> None:
        """Send what waits whenever there is something."""
        session = self._session
        assert session is not None
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._links.is_stopping:
                raise LinkRefusedError(1001, "the server stops")
            if session.end_reason is not None:
                raise session.end_reason
            if not session.is_open:
                continue
            if session.is_waiting:
                self._put(await self._links.ask(lambda core: session.apply()))
                if session.is_waiting:
                    await asyncio.sleep(_HELD)
                    self._wake.set()
            self._put(await self._links.ask(lambda core: session.more()))
