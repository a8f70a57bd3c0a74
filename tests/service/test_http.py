"""The HTTP calls of a real server on the loopback."""

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.servers import Server

JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}


def put(http: httpx.Client, id: str, expression: str, **fields: Any) -> httpx.Response:
    return http.put(f"/v1/subscriptions/{id}", json={"expression": expression, **fields})


def deliveries(http: httpx.Client, client: str, after: int | None = None) -> list[dict[str, Any]]:
    query: dict[str, Any] = {"client": client} | ({} if after is None else {"after": after})
    found: list[dict[str, Any]] = http.get("/v1/deliveries", params=query).json()["deliveries"]
    return found


def test_a_subscription_is_put_got_moved_listed_and_deleted(http: httpx.Client) -> None:
    new = put(http, "put-1", "price < 300 AND ST_DWithin(loc, here(), 500)", at=[1, 2], client="a")
    assert new.status_code == 201
    assert new.json()["subscription"]["regions"] == [
        {
            "kind": "circle",
            "attribute": "loc",
            "centre": [1.0, 2.0],
            "radius": 500.0,
            "here": True,
            "negated": False,
        }
    ]
    assert put(http, "put-1", "price < 200", client="b").status_code == 200
    got = http.get("/v1/subscriptions/put-1").json()["subscription"]
    assert (got["expression"], got["client"]) == ("price < 200", "b")
    assert http.post("/v1/subscriptions/put-1/move", json={"at": [3, 4]}).json() == {
        "added": [],
        "removed": [],
    }
    assert http.get("/v1/subscriptions/put-1").json()["subscription"]["at"] == [3.0, 4.0]
    assert http.delete("/v1/subscriptions/put-1").status_code == 204
    assert http.get("/v1/subscriptions/put-1").status_code == 404
    assert http.delete("/v1/subscriptions/put-1").status_code == 404
    assert http.post("/v1/subscriptions/put-1/move", json={"at": [3, 4]}).status_code == 404


def test_ids_may_be_anything(http: httpx.Client) -> None:
    for id in ("a/b", "ünï %20", "move", "two\nlines", "ends in a line\n"):
        quoted = quote(id)
        assert put(http, quoted, "id_price < 3", client="odd").status_code == 201
        assert http.get(f"/v1/subscriptions/{quoted}").json()["subscription"]["id"] == id


def test_what_no_path_knows_is_refused_in_json(http: httpx.Client) -> None:
    for method, path, status in (
        ("GET", "/no%0Asuch", 404),
        ("GET", "/nul%00", 404),
        ("POST", "/v1/no%0Asuch", 404),
        ("PATCH", "/v1/events", 405),
    ):
        refused = http.request(method, path)
        assert (refused.status_code, refused.headers["content-type"]) == (
            status,
            "application/json",
        )
        assert refused.json()["error"]


def test_many_subscriptions_come_as_lines_and_are_listed_by_pages(http: httpx.Client) -> None:
    lines = [{"id": f"bulk-{n:03}", "expression": f"bulk = {n}"} for n in range(250)]
    lines.insert(3, {"id": "bad", "expression": "bulk ="})
    body = "\n".join(map(json.dumps, lines)) + '\nno json\n{"op": "unsubscribe", "id": "bulk-007"}'
    found = http.post("/v1/subscriptions?client=bulk", content=body, headers=NDJSON).json()
    assert found["accepted"] == 251
    assert [(one["line"], one["error"]["kind"]) for one in found["rejected"]] == [
        (4, "expression_syntax"),
        (252, "record"),
    ]
    ids, after = [], ""
    while True:
        page = http.get(
            "/v1/subscriptions", params={"client": "bulk", "limit": 60, "after": after}
        ).json()
        ids += [one["id"] for one in page["subscriptions"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert ids == [f"bulk-{n:03}" for n in range(250) if n != 7]


@pytest.mark.parametrize(
    ("headers", "body", "ids"),
    [
        (JSON, {"id": "f1", "kind": "form"}, ["f1"]),
        (JSON, [{"id": "f2", "kind": "form"}, {"id": "f3", "kind": "other"}], ["f2"]),
        (NDJSON, b'{"id": "f4", "kind": "form"}\n\n{"id": "f5", "kind": "form"}\n', ["f4", "f5"]),
        (
            {"content-type": "application/geo+json"},
            {
                "type": "FeatureCollection",
                "features": [
                    {
                        "type": "Feature",
                        "id": "f6",
                        "properties": {"kind": "form"},
                        "geometry": {"type": "Point", "coordinates": [1, 2]},
                    }
                ],
            },
            ["f6"],
        ),
        (
            {"content-type": "application/cloudevents+json; charset=utf-8"},
            {
                "specversion": "1.0",
                "id": "f7",
                "source": "/s",
                "type": "t",
                "data": {"kind": "form"},
            },
            ["/s#f7"],
        ),
        (
            {"content-type": "application/cloudevents-batch+json"},
            [
                {
                    "specversion": "1.0",
                    "id": id,
                    "source": "/s",
                    "type": "t",
                    "data": {"kind": "form"},
                }
                for id in ("f8", "f9")
            ],
            ["/s#f8", "/s#f9"],
        ),
        (
            {
                **JSON,
                "ce-specversion": "1.0",
                "ce-id": "f10",
                "ce-source": "/s",
                "ce-type": "t",
            },
            {"kind": "form"},
            ["/s#f10"],
        ),
    ],
    ids=["one", "array", "lines", "geojson", "cloudevent", "batch", "binary"],
)
def test_events_come_in_every_format(
    http: httpx.Client, headers: dict[str, str], body: Any, ids: list[str]
) -> None:
    assert put(http, "formats", "kind = 'form'", client="formats").status_code in (200, 201)
    before = deliveries(http, "formats")
    after = before[-1]["seq"] if before else 0
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    found = http.post("/v1/events", content=content, headers=headers)
    assert found.status_code == 200
    assert [one["id"] for one in found.json()["results"] if one["matched"]] == ids
    assert [one["event"]["id"] for one in deliveries(http, "formats", after)] == ids


def test_an_event_without_an_id_is_given_one(http: httpx.Client) -> None:
    [result] = http.post("/v1/events", json={"nameless": 1}).json()["results"]
    assert http.get(f"/v1/events/{result['id']}").json()["event"]["nameless"] == 1


def test_live_events_are_delivered_to_who_comes_later(http: httpx.Client) -> None:
    event = {"id": "live-1", "level": 7, "until": "2200-01-01T00:00:00Z", "time": 5e9}
    assert http.post("/v1/events", json=event).json()["accepted"] == 1
    again = http.post("/v1/events", json=event)
    assert again.json()["rejected"][0]["error"]["kind"] == "duplicate_event"
    assert "local/" not in again.text
    assert put(http, "late", "level > 5", client="late").json()["added"] == ["live-1"]
    assert put(http, "late", "level > 9", client="late").json()["removed"] == ["live-1"]
    assert [(one["change"], one["event"]["id"]) for one in deliveries(http, "late")] == [
        ("added", "live-1"),
        ("removed", "live-1"),
    ]
    page = http.get("/v1/events/live").json()
    assert [one["id"] for one in page["events"]] == ["live-1"]
    assert http.get("/v1/events/live-1").json()["live"] is True


def test_the_server_stamps_the_time(http: httpx.Client) -> None:
    http.post("/v1/events", json={"id": "future", "x": 1, "time": "2150-01-01T00:00:00Z"})
    seen = http.get("/v1/events/recent", params={"limit": 1}).json()["events"][0]
    assert seen["event"] == {"id": "future", "x": 1}
    assert seen["time"] < "2100"


def test_one_batch_may_hold_an_id_twice(http: httpx.Client) -> None:
    put(http, "twice", "twice > 0", client="twice")
    events = [{"id": "same", "twice": 1}, {"id": "same", "twice": 2}]
    assert http.post("/v1/events", json=events).json()["accepted"] == 2
    assert [one["event"]["twice"] for one in deliveries(http, "twice")] == [1, 2]


def test_pages_go_on_after_a_sequence_and_acknowledge(http: httpx.Client) -> None:
    put(http, "pages", "page > 0", client="pages")
    http.post("/v1/events", json=[{"id": f"p{n}", "page": n} for n in range(1, 8)])
    page = http.get("/v1/deliveries", params={"client": "pages", "limit": 3}).json()
    assert ([one["seq"] for one in page["deliveries"]], page["next"]) == ([1, 2, 3], 3)
    assert [one["seq"] for one in deliveries(http, "pages", 5)] == [6, 7]
    assert [one["seq"] for one in deliveries(http, "pages")] == [6, 7], "up to 5 are acknowledged"
    ack = http.post("/v1/deliveries/ack", json={"client": "pages", "seq": 7})
    assert (ack.status_code, deliveries(http, "pages")) == (204, [])
    empty = http.get("/v1/deliveries", params={"client": "pages", "wait": 0.05}).json()
    assert (empty["deliveries"], empty["next"]) == ([], 7)


def test_questions_are_answered(http: httpx.Client) -> None:
    put(http, "asked", "asked < 5 AND ST_DWithin(spot, ST_Point(1, 2), 100)")
    http.post("/v1/events", json=[{"id": f"q{n}", "asked": n, "spot": [1, 2]} for n in range(8)])
    tried = http.post("/v1/match", json={"expression": "asked < 3", "limit": 2}).json()
    assert (tried["matched"], [one["event"]["id"] for one in tried["events"]]) == (3, ["q2", "q1"])
    never = http.post("/v1/match", json={"expression": "asked < 3 AND asked > 4"}).json()
    assert (never["never"], never["matched"]) == (True, 0)
    wrong = http.post("/v1/match", json={"expression": "asked <"})
    assert wrong.status_code == 400
    assert wrong.json()["error"]["start"] == 7
    why = http.post("/v1/explain", json={"subscription": "asked", "event": "q6"}).json()
    assert (why["matches"], why["note"]) == (False, "asked < 5 is false")
    tree = http.post("/v1/explain", json={"expression": "asked < 9", "event": {"asked": 3}}).json()
    assert tree["matches"]
    rejected = http.post("/v1/why-not", json={"event": "q6", "subscriptions": ["asked"]}).json()
    assert [one["attribute"] for one in rejected["rejections"]] == ["asked"]
    assert http.post("/v1/why-not", json={"event": "q6", "subscriptions": ["?"]}).status_code == 404
    kinds = {one["name"]: one["kind"] for one in http.get("/v1/schema").json()["attributes"]}
    assert (kinds["asked"], kinds["spot"]) == ("number", "point")
    stats = http.get("/v1/stats").json()
    assert stats["events"] >= 8
    assert http.get("/v1/brokers").json()["brokers"][0]["self"]


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "kind"),
    [
        ("PUT", "/v1/subscriptions/x", b"{", 400, "record"),
        ("PUT", "/v1/subscriptions/x", b"[]", 400, "record"),
        ("PUT", "/v1/subscriptions/x", b'{"expression": 3}', 400, "record"),
        ("PUT", "/v1/subscriptions/x", b'{"expression": "p < 1", "id": "y"}', 400, "record"),
        ("PUT", "/v1/subscriptions/x", b'{"expression": "p < 1", "at": [1, 99]}', 400, "record"),
        ("PUT", "/v1/subscriptions/x", b'{"expression": "p < 1", "client": "/"}', 400, "record"),
        ("PUT", "/v1/subscriptions/x", b'{"expression": "p < here()"}', 400, "expression_syntax"),
        ("PUT", "/v1/subscriptions/" + "x" * 500, b'{"expression": "p < 1"}', 400, "record"),
        ("POST", "/v1/subscriptions", b"{}", 415, "unsupported"),
        ("POST", "/v1/events", b'{"id": {"a": 1}}', 400, None),
        ("POST", "/v1/events", b'{"p": 1, "p": 2}', 400, "record"),
        ("POST", "/v1/events", b"[" * 100_000, 400, "record"),
        ("GET", "/v1/deliveries?after=x", b"", 400, "record"),
        ("GET", "/v1/deliveries?limit=0", b"", 400, "record"),
        ("GET", "/v1/deliveries?client=%2F", b"", 400, "record"),
        ("POST", "/v1/deliveries/ack", b'{"seq": -1}', 400, "record"),
        ("GET", "/v1/events/none", b"", 404, "not_found"),
        ("GET", "/v1/nothing", b"", 404, "not_found"),
        ("POST", "/v1/explain", b'{"subscription": "none", "event": {"p": 1}}', 404, "not_found"),
        ("GET", "/../../etc/passwd", b"", 404, "not_found"),
    ],
)
def test_what_is_wrong_is_said(
    http: httpx.Client, method: str, path: str, content: bytes, status: int, kind: str | None
) -> None:
    headers = JSON if path.startswith(("/v1/events", "/v1/deliveries")) else {}
    found = http.request(method, path, content=content, headers=headers)
    assert found.status_code == status, found.text
    if kind is not None:
        assert found.json()["error"]["kind"] == kind


def test_other_sites_and_other_names_are_refused(server: Server, http: httpx.Client) -> None:
    assert http.get("/v1/stats", headers={"Origin": "https://evil.example"}).status_code == 403
    assert http.get("/v1/stats", headers={"Origin": "null"}).status_code == 403
    assert http.get("/v1/stats", headers={"Host": "evil.example"}).status_code == 403
    assert http.get("/v1/stats", headers={"Origin": server.url}).status_code == 200
    policy = http.get("/health").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_body_that_is_too_large_is_not_read(folder: Any) -> None:
    with Server(folder, index="scan", limits={"body": 1000}) as small, small.http() as http:
        event = {"id": "large", "text": "x" * 2000}
        assert http.post("/v1/events", json=event).status_code == 413

        def parts() -> Any:
            for _ in range(20):
                yield b" " * 100

        streamed = http.post("/v1/events", content=parts(), headers=JSON)
        assert streamed.status_code == 413


def test_operators_are_told(http: httpx.Client) -> None:
    assert http.get("/health").json() == {"status": "ok"}
    assert http.get("/ready").json() == {"status": "ready"}
    metrics = http.get("/metrics").text
    assert "stentor_events_total" in metrics
    assert 'stentor_requests_total{kind="http",status="200"}' in metrics


def test_a_backup_is_a_store(http: httpx.Client, tmp_path: Any) -> None:
    put(http, "kept", "backup = 1", client="backup")
    http.post("/v1/events", json={"id": "backup", "backup": 1})
    file = http.post("/v1/backup").json()["file"]
    (tmp_path / "service.db").write_bytes(Path(file).read_bytes())
    with Server(tmp_path, index="scan") as again, again.http() as other:
        assert [one["event"]["id"] for one in deliveries(other, "backup")] == ["backup"]


def test_an_event_is_updated_and_withdrawn_over_http(http: httpx.Client) -> None:
    put(http, "low", "up_x < 5", client="up")
    event = {"id": "up-1", "up_x": 9, "until": time.time() + 900}
    assert http.post("/v1/events", json=event).json()["results"][0]["matched"] == 0
    entered = http.put("/v1/events/up-1", json={"up_x": 3})
    assert entered.json() == {"id": "up-1", "entered": ["low"], "left": [], "stayed": []}
    feature = {"type": "Feature", "id": "up-1", "geometry": None, "properties": {"up_x": 4}}
    geojson = {"Content-Type": "application/geo+json"}
    stayed = http.put("/v1/events/up-1", content=json.dumps(feature), headers=geojson)
    assert stayed.json()["stayed"] == ["low"]
    assert http.put("/v1/events/up-1", json={"id": "other", "up_x": 3}).status_code == 400
    assert http.get("/v1/events/up-1").json()["live"] is True
    assert http.delete("/v1/events/up-1").json()["left"] == ["low"]
    assert http.delete("/v1/events/up-1").status_code == 404
    found = deliveries(http, "up")
    assert [(one["change"], one["event"]["up_x"]) for one in found] == [
        ("entered", 3),
        ("stayed", 4),
        ("left", 4),
    ]
