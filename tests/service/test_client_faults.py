"""What a client cannot do is said to whoever asked for it, and stops nothing else."""

import asyncio
import os
import signal
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve

from stentor.client import AsyncClient, Client, ReceivedDelivery, ReceivedGap
from stentor.errors import ServiceError
from tests.support.servers import PATIENCE, Server, free_port
from tests.support.tcp_proxy import TcpProxy

STENTOR = [sys.executable, "-m", "stentor"]


def nested(levels: int, kind: Callable[[Any], Any]) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = kind(found)
    return found


#: Events that nobody can be sent, each with a part of what is said.
UNSENDABLE = {
    "deep": ({"a": nested(80, lambda inner: {"a": inner})}, "nested more than 64 deep"),
    "deep tuples": ({"a": nested(80, lambda inner: (inner,))}, "nested more than 64 deep"),
    "number as key": ({1: 2}, "keys of an object are texts"),
    "half a pair": ({"t": "\ud800"}, "it cannot be sent"),
    "inexact": ({"n": 2**70 + 1}, "is an integer that a double cannot hold"),
    "object": ({"n": object()}, "it cannot be sent"),
    "infinite": ({"n": float("inf")}, "is no number that JSON has"),
    "bytes": ({"n": b"x"}, "got bytes"),
    "too large": ({"t": "x" * 5_000_000}, "and the server's frames at most 4,000,000"),
    "no object": (7, "expected an object, got int"),
}


@pytest.mark.parametrize("name", UNSENDABLE)
def test_an_event_that_cannot_be_sent_is_refused_alone(server: Server, name: str) -> None:
    event, said = UNSENDABLE[name]
    with Client(server.url, client="faulty", deliveries=False) as client:
        fine = [{"id": f"{name}-{n}", "x": n} for n in range(3)]
        given = [fine[0], {"id": "no", **event} if isinstance(event, dict) else event, *fine[1:]]
        rejected = client.publish(given)
        positions = [one.position for one in rejected]
        assert positions in ([1], [0, 1, 2, 3]), "alone, or with its frame"
        assert positions == [1] or name == "deep tuples"
        assert said in str(rejected[0].error)
        assert client.publish(fine) == []


def test_what_can_be_sent_in_another_form_is(server: Server) -> None:
    with Client(server.url, client="forms") as client:
        client.subscribe("forms", "forms = 1")
        moment = datetime(2026, 5, 1, tzinfo=UTC)
        event = {"forms": 1, "large": 2**70, "when": moment, "loc": (1, 2), "until": 4e9}
        assert client.publish([event]) == []
        one = next(client.deliveries())
        assert isinstance(one, ReceivedDelivery)
        assert (one.event["large"], one.event["when"]) == (2**70, "2026-05-01T00:00:00Z")


def test_events_are_sent_in_frames_that_the_server_takes(server: Server, folder: Path) -> None:
    with Client(server.url, deliveries=False) as client:
        assert client.publish([{"text": "x" * 10_000} for _ in range(500)]) == []
    with (
        Server(folder, index="scan", limits={"frame": 5_000}) as small,
        Client(small.url, deliveries=False) as client,
    ):
        sizes = [1, 4_000, 4_000, 900, 6_000, 10, 4_700]
        rejected = client.publish([{"text": "x" * size} for size in sizes])
        assert [(one.position, one.error.kind) for one in rejected] == [(4, "too_large")]
        with pytest.raises(ServiceError, match="at most 5,000"):
            client.subscribe("s", "x = '" + "y" * 5_000 + "'")
        with pytest.raises(ServiceError) as raised:
            client.subscribe("s", "x = 1", at=[[1] * 9_000])
        assert raised.value.kind == "too_large"


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    host = url.removeprefix("http://")
    with pytest.raises(ServiceError, match=f"{host} does not answer: Connection refused") as raised:
        Client(url, connect_timeout=0.2)
    assert raised.value.kind == "unreachable"
    environment = {**os.environ, "STENTOR_URL": url}
    for command in (["pub", "-"], ["sub", "x > 0"]):
        ended = subprocess.run(
            [*STENTOR, *command, "--connect-timeout", "0.2"],
            input='{"x": 1}',
            capture_output=True,
            text=True,
            env=environment,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == 3
        assert f"stentor: {host} does not answer: " in ended.stderr


def test_a_certificate_that_nobody_vouches_for_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "own.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    try:
        files = ["-keyout", str(key), "-out", str(certificate)]
        subprocess.run([*made, *files, *subject], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    tls = {"certificate": str(certificate), "key": str(key)}
    with Server(folder, index="scan", tls=tls) as server:
        url = f"https://localhost:{server.port}"
        with pytest.raises(ServiceError, match=r"is not trusted: self.signed") as raised:
            Client(url)
        assert raised.value.kind == "untrusted"
        with pytest.raises(ServiceError, match=r"localhost:\d+ does not answer: "):
            Client(f"http://localhost:{server.port}", connect_timeout=0.2)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert ssl.create_default_context().get_ca_certs()
        with Client(url) as client:
            assert client.publish({"x": 1}) == []
            assert client.request("GET", "/v1/stats")["events"] == 1


def test_a_name_that_no_client_may_have_is_refused(server: Server) -> None:
    with pytest.raises(ServiceError, match="expected 1 to 64 letters"):
        Client(server.url, client="a b")


def test_a_server_that_is_no_stentor_is_said(server: Server) -> None:
    with pytest.raises(ServiceError, match="no service of Stentor is there: HTTP 40"):
        Client(f"{server.url}/elsewhere")


def test_a_client_that_lost_its_server_says_so_where_it_was_told_how_long(folder: Path) -> None:
    with (
        Server(folder, index="scan") as server,
        Client(server.url, reconnect_timeout=0.3) as client,
    ):
        server.kill()
        for _ in range(2):
            with pytest.raises(ServiceError, match="does not answer"):
                client.publish([{"x": 1}])
        with pytest.raises(ServiceError, match="does not answer"):
            next(client.deliveries())


def test_what_was_asked_while_the_server_was_gone_is_done_when_it_is_back(folder: Path) -> None:
    async def run(server: Server) -> None:
        async with AsyncClient(server.url) as client:
            server.kill()
            asked = [asyncio.ensure_future(client.publish({"x": n})) for n in range(5)]
            asked.append(asyncio.ensure_future(client.publish({"x": "no", "until": []})))
            await asyncio.sleep(0)
            asked[1].cancel()
            await asyncio.to_thread(server.start)
            told = await asyncio.gather(*asked, return_exceptions=True)
            assert [len(one) for one in told if isinstance(one, list)] == [0, 0, 0, 0, 1]
            assert isinstance(told[1], asyncio.CancelledError)

    with Server(folder, index="scan") as server:
        asyncio.run(run(server))


def test_a_slow_reader_is_given_nothing_twice_however_often_it_is_cut_off(server: Server) -> None:
    async def run(proxy: TcpProxy) -> None:
        async with (
            AsyncClient(f"http://127.0.0.1:{proxy.port}", client="slow") as slow,
            AsyncClient(server.url, client="sender", deliveries=False) as sender,
        ):
            await slow.subscribe("slow", "slow >= 0")
            await sender.publish([{"id": f"d{n}", "slow": n} for n in range(50)])
            found = []
            async for one in slow.deliveries():
                assert isinstance(one, ReceivedDelivery)
                found.append(one.event["slow"])
                if len(found) in (5, 6, 30):
                    while slow._arrived.qsize() < 50 - len(found):
                        await asyncio.sleep(0.01)
                    await asyncio.to_thread(proxy.cut)
                    await slow.move("slow", (0, 0))  # it has come back
                if len(found) == 50:
                    break
            assert found == list(range(50))
            await sender.publish({"id": "last", "slow": 50})
            assert (await slow.next_delivery(PATIENCE)).event["slow"] == 50

    with TcpProxy(server.port, 1) as proxy:
        asyncio.run(run(proxy))


# Servers that are none.


@asynccontextmanager
async def speaking(
    talk: Callable[[ServerConnection, int], Any],
) -> AsyncIterator[str]:
    """A server whose connections are numbered, each greeted by *talk*; its address."""
    count = 0

    async def run(connection: ServerConnection) -> None:
        nonlocal count
        count += 1
        await talk(connection, count)

    async with serve(run, "127.0.0.1", 0, max_size=None) as server:
        yield f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


async def say(connection: ServerConnection, kind: str, **frame: Any) -> None:
    await connection.send(msgspec.msgpack.encode({"type": kind, **frame}))


async def hello(connection: ServerConnection, last: int = 0, frame: int = 4_000_000) -> None:
    await say(connection, "hello", acknowledged=0, last=last, limits={"frame": frame})


def delivery(seq: int, id: str) -> dict[str, Any]:
    fields = {"subscription": "s", "change": "added", "time": "", "event": {"id": id}}
    return {"seq": seq, **fields}


@pytest.mark.parametrize("code", [1007, 1009])
def test_a_frame_with_which_the_server_ends_the_connection_is_refused_alone(code: int) -> None:
    taken: Counter[str] = Counter()

    async def talk(connection: ServerConnection, number: int) -> None:
        await hello(connection)
        async for data in connection:
            frame = msgspec.msgpack.decode(data)
            [event] = frame["events"]
            if event["id"] == "bad":
                await connection.close(code, "no such frame")
                return
            taken[event["id"]] += 1
            if number > 1 or event["id"] != "a":  # the first answer is lost
                await say(connection, "answer", ref=frame["ref"], rejected=[])

    async def run() -> None:
        async with speaking(talk) as url, AsyncClient(url) as client:
            for _ in range(2):
                ids = ["a", "bad", "b", "bad", "c"]
                told = await asyncio.wait_for(
                    asyncio.gather(*(client.publish({"id": id}) for id in ids)), PATIENCE
                )
                assert [len(one) for one in told] == [0, 1, 0, 1, 0]
                assert str(told[1][0].error) == "no such frame"

    asyncio.run(run())
    assert set(taken) == {"a", "b", "c"}


def test_a_server_that_says_nothing_is_given_up() -> None:
    async def talk(connection: ServerConnection, number: int) -> None:
        await connection.wait_closed()

    async def run() -> None:
        async with speaking(talk) as url:
            with pytest.raises(ServiceError, match="does not answer: it says nothing"):
                async with AsyncClient(url, connect_timeout=0.3):
                    pass

    asyncio.run(run())


def test_a_frame_too_large_for_the_server_that_came_back_is_refused() -> None:
    async def talk(connection: ServerConnection, number: int) -> None:
        await hello(connection, frame=5_000 if number == 1 else 1_000)
        async for data in connection:
            if number == 1:
                await connection.close()
                return
            frame = msgspec.msgpack.decode(data)
            await say(connection, "answer", ref=frame["ref"], rejected=[])

    async def run() -> None:
        async with speaking(talk) as url, AsyncClient(url) as client:
            [one] = await client.publish({"id": "e", "text": "x" * 2_000})
            assert one.error.kind == "too_large"
            assert await client.publish({"id": "e"}) == []

    asyncio.run(run())


def test_deliveries_of_a_store_that_is_no_more_acknowledge_nothing_of_the_next() -> None:
    acknowledged: list[tuple[int, int]] = []

    async def talk(connection: ServerConnection, number: int) -> None:
        ids = ["a1", "a2", "a3", "a4"] if number == 1 else ["b1", "b2"]
        await hello(connection, last=len(ids))
        told = [delivery(seq, id) for seq, id in enumerate(ids, start=1)]
        await say(connection, "deliveries", deliveries=told)
        async for data in connection:
            frame = msgspec.msgpack.decode(data)
            if frame["op"] == "ack":
                acknowledged.append((number, frame["seq"]))
            elif number == 1:
                await connection.close()
            else:
                await say(connection, "answer", ref=frame["ref"], rejected=[])

    async def run() -> None:
        async with speaking(talk) as url:
            async with AsyncClient(url) as client:
                found = []
                async for one in client.deliveries():
                    assert isinstance(one, ReceivedDelivery)
                    found.append(one.event["id"])
                    if found == ["a1", "a2"]:
                        await client.publish({"id": "x"})  # it is another store that answers
                    if one.event["id"] == "a4":
                        await client._send_ack()
                        assert [seq for number, seq in acknowledged if number == 2] == []
                    if one.event["id"] == "b2":
                        break
                assert found == ["a1", "a2", "a3", "a4", "b1", "b2"]
            assert [seq for number, seq in acknowledged if number == 2] == [1]

    asyncio.run(run())


def test_what_came_before_a_gap_is_not_told_as_lost() -> None:
    async def talk(connection: ServerConnection, number: int) -> None:
        await hello(connection, last=9)
        await say(connection, "deliveries", deliveries=[delivery(1, "a"), delivery(2, "b")])
        if number == 1:
            await connection.close()
            return
        await say(connection, "gap", **{"from": 1, "to": 8}, reason="dropped")
        await say(connection, "gap", **{"from": 1, "to": 8}, reason="dropped")
        await say(connection, "deliveries", deliveries=[delivery(9, "c")])
        await connection.wait_closed()

    async def run() -> None:
        async with speaking(talk) as url, AsyncClient(url) as client:
            found = [await client.next_delivery(PATIENCE) for _ in range(4)]
            assert [one.seq if isinstance(one, ReceivedDelivery) else one for one in found] == [
                *(1, 2, ReceivedGap(3, 8, "dropped"), 9)
            ]

    asyncio.run(run())


# Commands.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_subscriber_that_is_ended_leaves_what_it_was_told_to_leave(
    folder: Path, number: signal.Signals, is_kept: bool
) -> None:
    with Server(folder, index="scan") as server, server.http() as http:
        environment = {**os.environ, "STENTOR_URL": server.url}
        command = [*STENTOR, "sub", "x > 0", *(["--id", "kept"] if is_kept else [])]
        subscriber = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert subscriber.stderr is not None
        assert subscriber.stdout is not None
        while not subscriber.stderr.readline().startswith("waiting"):
            pass
        http.post("/v1/events", json={"id": "e", "x": 1})
        assert '"id":"e"' in subscriber.stdout.readline()
        assert len(http.get("/v1/stats").json()["clients"]) == 1
        subscriber.send_signal(number)
        _, said = subscriber.communicate(timeout=PATIENCE)
        assert subscriber.returncode == 130
        assert "Traceback" not in said
        left = [one["id"] for one in http.get("/v1/subscriptions").json()["subscriptions"]]
        clients = http.get("/v1/stats").json()["clients"]
        assert (left, len(clients)) == (["kept"], 1) if is_kept else ([], 0)


def test_a_subscriber_whose_server_is_gone_can_be_ended(folder: Path) -> None:
    with Server(folder, index="scan") as server:
        subscriber = subprocess.Popen(
            [*STENTOR, "sub", "x > 0"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "STENTOR_URL": server.url},
        )
        assert subscriber.stderr is not None
        while not subscriber.stderr.readline().startswith("waiting"):
            pass
        server.kill()
        subscriber.send_signal(signal.SIGTERM)
        _, said = subscriber.communicate(timeout=PATIENCE)
        assert subscriber.returncode == 130
        assert "is still there: " in said
        assert "does not answer" in said
