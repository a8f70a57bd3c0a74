"""Keys, scopes, owners, tokens, tickets and limits of a real server."""

import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from stentor.errors import SettingsError
from stentor.service.auth import Gate, Keys
from stentor.service.settings import ServeSettings
from tests.support.servers import Server

SECRET = "a secret that is long enough to be one, surely"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("closed")
    keys = Keys(folder)
    made = {
        "acme": keys.add("acme", ["publish", "subscribe"]),
        "rival": keys.add("rival", ["publish", "subscribe"]),
        "sender": keys.add("acme", ["publish"]),
        "reader": keys.add("acme", ["subscribe"]),
        "boss": keys.add("boss", ["admin"]),
    }
    secret = folder / "secret"
    secret.write_text(SECRET)
    tokens = {"secret_file": str(secret), "audience": "stentor"}
    with Server(folder, index="scan", jwt=tokens) as server:
        yield server, made, folder


def test_keys_are_hashed_and_readable_by_their_user_only(closed: Any) -> None:
    _, made, folder = closed
    file = folder / "keys.json"
    assert not any(key.split("_", 2)[2] in file.read_text() for key in made.values())
    assert file.stat().st_mode & 0o077 == 0


def test_nobody_comes_in_without_a_key(closed: Any) -> None:
    server, made, _ = closed
    wrong = made["acme"][:-1] + ("x" if made["acme"][-1] != "x" else "y")
    for key in (None, "nonsense", "stk_x_y", wrong):
        with server.http(key) as http:
            found = http.get("/v1/stats")
            assert (found.status_code, found.json()["error"]["kind"]) == (401, "unauthorised")
            assert found.headers["www-authenticate"] == "Bearer"
    with server.http() as http:
        assert http.get("/health").status_code == 200
        assert http.get("/v1/stream").status_code == 401
    with (
        connect(server.socket_url(), compression=None, proxy=None) as socket,
        pytest.raises(ConnectionClosed) as ended,
    ):
        socket.recv()
    assert ended.value.rcvd is not None
    assert ended.value.rcvd.code == 4401


def test_a_key_does_what_its_scopes_say(closed: Any) -> None:
    server, made, _ = closed
    with server.http(made["sender"]) as http:
        assert http.post("/v1/events", json={"id": "s", "x": 1}).status_code == 200
        assert http.get("/v1/subscriptions").status_code == 403
        assert http.put("/v1/subscriptions/a", json={"expression": "x = 1"}).status_code == 403
        assert http.get("/v1/keys").status_code == 403
        headers = {"Authorization": f"Bearer {made['sender']}"}
        url = server.socket_url()
        with connect(url, compression=None, proxy=None, additional_headers=headers) as socket:
            socket.recv()
            record = {"op": "subscribe", "id": "a", "expression": "x = 1"}
            socket.send(json.dumps({"op": "records", "records": [record]}))
            told = json.loads(socket.recv())
            assert told["rejected"][0]["error"]["kind"] == "forbidden"
    with server.http(made["reader"]) as http:
        assert http.post("/v1/events", json={"id": "s", "x": 1}).status_code == 403
        assert http.get("/v1/subscriptions").status_code == 200


def test_one_owner_knows_nothing_of_another(closed: Any) -> None:
    server, made, _ = closed
    with server.http(made["acme"]) as acme, server.http(made["rival"]) as rival:
        until = "2200-01-01T00:00:00Z"
        assert acme.put("/v1/subscriptions/s", json={"expression": "y > 0"}).status_code == 201
        assert rival.get("/v1/subscriptions/s").status_code == 404
        assert rival.delete("/v1/subscriptions/s").status_code == 404
        assert rival.post("/v1/subscriptions/s/move", json={"at": [1, 2]}).status_code == 404
        assert rival.put("/v1/subscriptions/s", json={"expression": "y > 5"}).status_code == 201
        assert acme.get("/v1/subscriptions/s").json()["subscription"]["expression"] == "y > 0"
        [result] = acme.post("/v1/events", json={"id": "e", "y": 9, "until": until}).json()[
            "results"
        ]
        assert result["matched"] == 1
        assert rival.get("/v1/deliveries").json()["deliveries"] == []
        assert len(acme.get("/v1/deliveries").json()["deliveries"]) == 1
        late = rival.put("/v1/subscriptions/late", json={"expression": "y > 1"}).json()
        assert late["added"] == []
        assert rival.get("/v1/events/e").status_code == 404
        assert rival.get("/v1/events/live").json()["events"] == []
        assert rival.get("/v1/events/recent").json()["events"] == []
        assert rival.post("/v1/match", json={"expression": "y > 0"}).json()["looked_at"] == 0
        assert rival.post("/v1/events", json={"id": "e", "y": 9, "until": until}).status_code == 200
        assert [one["client"] for one in rival.get("/v1/stats").json()["clients"]] == ["default"]
        conflict = rival.put("/v1/subscriptions/c", json={"expression": "y = 'text'"})
        assert conflict.json()["error"]["kind"] == "type_conflict"
        assert "acme" not in conflict.text


def test_tokens_of_somebody_else_are_taken(closed: Any) -> None:
    server, _, _ = closed
    good = {"sub": "acme", "scope": "subscribe other", "aud": "stentor", "exp": time.time() + 60}

    def status(claims: dict[str, Any], algorithm: str = "HS256", secret: str = SECRET) -> int:
        token = jwt.encode(claims, secret if algorithm != "none" else None, algorithm)  # type: ignore[arg-type]
        with server.http(token) as http:
            return http.get("/v1/stats").status_code

    assert status(good) == 200
    assert status({**good, "exp": time.time() - 5}) == 401
    assert status({name: good[name] for name in ("sub", "scope", "aud")}) == 401
    assert status({**good, "aud": "others"}) == 401
    assert status({**good, "sub": "a/b"}) == 401
    assert status({**good, "scope": "other"}) == 403
    assert status(good, secret=SECRET[::-1]) == 401
    assert status(good, algorithm="none") == 401


def test_a_ticket_opens_one_connection(closed: Any) -> None:
    server, made, _ = closed
    with server.http(made["acme"]) as http:
        ticket = http.post("/v1/tickets").json()["ticket"]
    url = server.socket_url(f"ticket={ticket}")
    with connect(url, compression=None, proxy=None) as socket:
        assert json.loads(socket.recv())["owner"] == "acme"
    with (
        connect(url, compression=None, proxy=None) as socket,
        pytest.raises(ConnectionClosed) as ended,
    ):
        socket.recv()
    assert ended.value.rcvd is not None
    assert ended.value.rcvd.code == 4401


def test_an_administrator_makes_and_revokes_keys(closed: Any) -> None:
    server, made, _ = closed
    with server.http(made["boss"]) as boss:
        key = boss.post("/v1/keys", json={"owner": "new", "scopes": ["subscribe"]}).json()["key"]
        with server.http(key) as http:
            assert http.get("/v1/stats").status_code == 200
            listed = boss.get("/v1/keys").json()["keys"]
            assert listed[-1]["owner"] == "new"
            assert "hash" not in listed[-1]
            assert boss.delete(f"/v1/keys/{listed[-1]['id']}").status_code == 204
            assert http.get("/v1/stats").status_code == 401
        bad = boss.post("/v1/keys", json={"owner": "a/b", "scopes": ["subscribe"]})
        assert bad.status_code == 400


def test_other_machines_need_a_key(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no key is configured"):
        Gate(ServeSettings(host="0.0.0.0", folder=tmp_path))
    keys = Keys(tmp_path)
    keys.add("acme", ["admin"])
    gate = Gate(ServeSettings(host="0.0.0.0", folder=tmp_path))
    assert gate.is_closed
    [kept] = keys.all()
    keys.revoke(kept.id)
    assert Gate(ServeSettings(folder=tmp_path)).is_closed, "the last key gone opens nothing"


def test_an_owner_has_its_limits(folder: Path) -> None:
    limits = {"subscriptions_per_owner": 2, "records_per_second": 10, "connections_per_owner": 1}
    with Server(folder, index="scan", limits=limits) as server, server.http() as http:
        answers = [
            http.put(f"/v1/subscriptions/s{n}", json={"expression": "x = 1"}) for n in range(3)
        ]
        assert [one.status_code for one in answers] == [201, 201, 429]
        with (
            connect(server.socket_url(), compression=None, proxy=None) as first,
            connect(server.socket_url(), compression=None, proxy=None) as second,
        ):
            first.recv()
            with pytest.raises(ConnectionClosed) as ended:
                second.recv()
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1013
        statuses = [http.post("/v1/events", json=[{"x": 1}] * 50).status_code for _ in range(2)]
        assert statuses[-1] == 429


def test_a_revoked_key_ends_the_connections_that_it_opened(folder: Path) -> None:
    keys = Keys(folder)
    key, other = (keys.add("acme", ["publish", "subscribe"]) for _ in range(2))
    with Server(folder, index="scan") as server, server.http(other) as http:
        headers = {"Authorization": f"Bearer {key}"}
        url = server.socket_url()
        with connect(url, compression=None, proxy=None, additional_headers=headers) as socket:
            assert json.loads(socket.recv())["type"] == "hello"
            http.put("/v1/subscriptions/s", json={"expression": "x > 0"})
            assert keys.revoke(key.split("_")[1])
            time.sleep(1.5)  # within a second the server has looked
            http.post("/v1/events", json={"id": "e", "x": 1})
            with pytest.raises(ConnectionClosed) as ended:
                socket.recv(timeout=10)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 4401
        assert len(http.get("/v1/deliveries").json()["deliveries"]) == 1


def test_a_stream_of_a_token_ends_with_it(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "secret").write_text(SECRET)
    claims = {"sub": "acme", "scope": "publish subscribe", "exp": time.time() + 2}
    token = jwt.encode(claims, SECRET, "HS256")
    tokens = {"secret_file": str(folder / "secret")}
    with Server(folder, index="scan", jwt=tokens) as server:
        headers = {"Authorization": f"Bearer {token}"}
        url = server.socket_url()
        with connect(url, compression=None, proxy=None, additional_headers=headers) as socket:
            socket.recv()
            with pytest.raises(ConnectionClosed) as ended:
                socket.recv(timeout=20)
    assert ended.value.rcvd is not None
    assert ended.value.rcvd.code == 4401


def test_who_only_publishes_gets_a_ticket_too(closed: Any) -> None:
    server, made, _ = closed
    with server.http(made["sender"]) as http:
        ticket = http.post("/v1/tickets").json()["ticket"]
    with connect(server.socket_url(f"ticket={ticket}"), compression=None, proxy=None) as socket:
        assert json.loads(socket.recv())["owner"] == "acme"
        record = {"op": "publish", "events": [{"id": "t", "x": 1}], "ref": 1}
        socket.send(json.dumps(record))
        assert json.loads(socket.recv())["accepted"] == 1


def test_pages_of_named_origins_may_ask(folder: Path) -> None:
    site = "https://app.example.org"
    with Server(folder, index="scan", origins=[site]) as server, server.http() as http:
        asks = {"Origin": site, "Access-Control-Request-Method": "PUT"}
        before = http.options("/v1/subscriptions/s", headers=asks)
        assert before.status_code == 204
        assert before.headers["access-control-allow-origin"] == site
        assert "PUT" in before.headers["access-control-allow-methods"]
        assert "authorization" in before.headers["access-control-allow-headers"]
        told = http.get("/v1/stats", headers={"Origin": site})
        assert told.headers["access-control-allow-origin"] == site
        assert told.headers["vary"] == "Origin"
        for strange in ("https://evil.example.org", "null", "http://["):
            refused = http.get("/v1/stats", headers={"Origin": strange})
            assert refused.status_code == 403
            assert "access-control-allow-origin" not in refused.headers
            asks["Origin"] = strange
            assert http.options("/v1/stats", headers=asks).status_code == 403


def test_other_names_of_the_loopback_need_a_key_or_are_named(folder: Path) -> None:
    proxied = {"Host": "alerts.example.org"}
    with Server(folder / "open", index="scan") as server, server.http() as http:
        assert http.get("/v1/stats", headers=proxied).status_code == 403
    hosts = ["alerts.example.org"]
    with Server(folder / "named", index="scan", hosts=hosts) as server, server.http() as http:
        assert http.get("/v1/stats", headers=proxied).status_code == 200
    key = Keys(folder / "closed").add("acme", ["subscribe"])
    with Server(folder / "closed", index="scan") as server, server.http(key) as http:
        assert http.get("/v1/stats", headers=proxied).status_code == 200


def test_a_declared_attribute_keeps_its_type(folder: Path) -> None:
    with Server(folder, index="scan", schema={"price": "number"}) as server, server.http() as http:
        text = http.put("/v1/subscriptions/t", json={"expression": "price = 'cheap'"})
        assert text.json()["error"]["kind"] == "type_conflict"
        assert http.put("/v1/subscriptions/n", json={"expression": "price < 3"}).status_code == 201
        assert http.put("/v1/subscriptions/c", json={"expression": "colour = 'red'"}).is_success
        [result] = http.post("/v1/events", json={"id": "e", "price": 2}).json()["results"]
        assert result["matched"] == 1
        server.kill()
        server.start()
        assert http.put("/v1/subscriptions/t", json={"expression": "price = 'x'"}).is_client_error
