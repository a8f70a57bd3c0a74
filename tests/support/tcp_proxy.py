"""A TCP proxy that cuts, delays and halves what goes through it, by a seed."""

import asyncio
import random
import threading
from collections.abc import Coroutine
from typing import Any


class TcpProxy:
    """Between `127.0.0.1:port` and *target*; a thread of its own runs it."""

    def __init__(self, target: int, seed: int) -> None:
        self._target, self._seeded = target, random.Random(seed)
        self.port, self.cuts = 0, 0
        #: How likely a part of what goes through is the last one; and how long it waits.
        self.cut_chance, self.delay = 0.0, 0.0
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "TcpProxy":
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """End all connections that are open."""
        self._run(self._cut())

    async def _cut(self) -> None:
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()

    async def _stop(self) -> None:
        self._server.close()
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self, step: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result(60)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there}
        await asyncio.gather(
            self._copy(reader, there, writer), self._copy(there_reader, writer, there)
        )
        self._writers -= {writer, there}

    async def _copy(
        self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await reader.read(65_536):
                if self.delay:
                    await asyncio.sleep(self._seeded.uniform(0, self.delay))
                if self._seeded.random() < self.cut_chance:
                    to.write(data[: self._seeded.randrange(len(data))])
                    await to.drain()
                    self.cuts += 1
                    break
                to.write(data)
                await to.drain()
        except OSError:
            pass
        finally:
            to.close()
            back.close()
