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
