"""Servers in processes of their own, forked from one that has imported everything."""

import multiprocessing
import os
import signal
import socket
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import httpx
import msgspec

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.support.warm_server"])
#: Seconds in which a server must be there, or gone: this machine may be busy.
PATIENCE = 60


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _serve(settings: bytes, to_parent: Connection) -> None:
    from stentor.service.run import serve
    from stentor.service.settings import ServeSettings

    signal.signal(signal.SIGINT, signal.default_int_handler)
    raw = msgspec.json.decode(settings)
    told = msgspec.convert({**raw, "folder": "."}, ServeSettings, dec_hook=_path)
    serve(
        msgspec.structs.replace(told, folder=Path(raw["folder"])),
        lambda ready: to_parent.send(ready.port),
    )


def _path(kind: type, raw: Any) -> Any:
    return Path(raw)


class Server:
    """One server; it may be killed and started again on the same port and folder."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.port = free_port()
        self._settings = {"folder": str(folder), "port": self.port, "console": False, **settings}
        self._process: ForkServerProcess | None = None
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        here, there = FORKS.Pipe(duplex=False)
        encoded = msgspec.json.encode(self._settings)
        self._process = FORKS.Process(target=_serve, args=(encoded, there), daemon=True)
        self._process.start()
        there.close()
        assert here.poll(PATIENCE), "the server is ready in time"
        assert here.recv() == self.port

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        self._gone()

    def _gone(self) -> None:
        assert self._process is not None
        self._process.join(PATIENCE)
        assert self._process.exitcode is not None, "it ended in time"
        self._process = None

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()

    def http(self, key: str | None = None) -> httpx.Client:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False)

    def socket_url(self, query: str = "") -> str:
        return f"ws://127.0.0.1:{self.port}/v1/ws?{query}"
