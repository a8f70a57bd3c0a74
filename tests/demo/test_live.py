"""The afternoon live: what people and shops do arrives at a real server."""

import asyncio

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from stentor.demo.afternoon import Afternoon
from stentor.demo.live import play
from tests.support.servers import Server


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("city"), index="scan") as one:
        yield one


def test_the_city_lives_on_a_server(served):
    afternoon = Afternoon(people=30, shops=6, events=20, moves=40, leaving=0.2, bad=0, seed=2)
    heard = []

    def on_progress(records: int, deliveries: int) -> None:
        heard.append((records, deliveries))

    asyncio.run(play(served.url, afternoon, minutes=0.03, on_progress=on_progress))
    assert heard[-1][0] == len(afternoon)
    with served.http() as client:
        ids = {
            one["id"] for one in client.get("/v1/subscriptions?client=city").json()["subscriptions"]
        }
        seen = client.get("/v1/events/recent?limit=1000").json()["events"]
    left = {r["id"] for r in afternoon.records() if r["op"] == "unsubscribe"}
    stay = {r["id"] for r in afternoon.records() if r["op"] == "subscribe" and "until" not in r}
    assert stay - left <= ids
    assert not ids & left
    published = {r["id"] for r in afternoon.records() if r["op"] == "publish"}
    assert published <= {one["event"]["id"] for one in seen}
