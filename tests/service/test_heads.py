"""What comes before a request is bounded in time, in size and in number."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from stentor.service import requests
from stentor.service.heads import MOST_HEAD, bounded_http
from stentor.service.refusals import RefusedError


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """A server of at most three connections, which wait half a second."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=bounded_http(3, 0.5), lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([bound])), daemon=True)
    thread.start()
    try:
        yield bound.getsockname()
    finally:
        server.should_exit = True
        thread.join(20)
        bound.close()


def ended(connection: socket.socket) -> bool:
    """Whether the server ends the connection and answers nothing."""
    connection.settimeout(20)
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def answer_to(connection: socket.socket) -> bytes:
    connection.settimeout(20)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return connection.recv(1000)


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA: b"])
def test_a_head_that_does_not_end_is_not_waited_for(address: Any, said: bytes) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(said)
        assert ended(connection)


def test_a_second_head_that_does_not_end_is_not_waited_for(address: Any) -> None:
    with socket.create_connection(address) as connection:
        assert b"204" in answer_to(connection)
        connection.sendall(b"GET / HTTP/1.1\r\nHo")
        assert ended(connection)


def test_a_head_without_end_is_not_kept(address: Any) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        lines = (b"A: " + b"b" * 995 + b"\r\n") * (100 * MOST_HEAD // 1000)
        with pytest.raises(ConnectionError):
            connection.sendall(lines)


def test_one_connection_too_many_is_ended_and_the_others_go_on(address: Any) -> None:
    held = [socket.create_connection(address) for _ in range(3)]
    try:
        assert all(b"204" in answer_to(one) for one in held)
        with socket.create_connection(address) as late:
            assert ended(late)
        assert b"204" in answer_to(held[0])
    finally:
        for one in held:
            one.close()


def test_a_body_that_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_SECONDS", 0.05)

    class Slow:
        def __init__(self) -> None:
            self.headers: dict[str, str] = {}

        async def stream(self) -> Any:
            yield b"{"
            await asyncio.sleep(60)

    with pytest.raises(RefusedError) as refused:
        asyncio.run(requests.body_of(Slow(), 1000))  # type: ignore[arg-type]
    assert refused.value.status == 408
