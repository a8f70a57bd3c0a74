"""The worked example of an application: alerts on FastAPI, run as it stands."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")
EXAMPLE = Path(__file__).parents[2] / "examples" / "alerts_api.py"
HEADERS = {"x-user": "ana"}


def clients(folder, monkeypatch):
    """The application over *folder*, as a server would start it."""
    from fastapi.testclient import TestClient

    monkeypatch.setenv("ALERTS_FOLDER", str(folder))
    spec = importlib.util.spec_from_file_location("alerts_api", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "alerts_api", module)
    spec.loader.exec_module(module)
    return TestClient(module.app)


def test_alerts_are_told_as_listings_come_and_are_there_after_a_restart(tmp_path, monkeypatch):
    alert = {"expression": "price < 300 AND ST_DWithin(loc, here(), 2000)", "at": [151.2, -33.9]}
    listing = {"id": "tv", "price": 280, "loc": [151.2, -33.9]}
    with clients(tmp_path / "alerts", monkeypatch) as client:
        assert client.put("/alerts/a1", json=alert, headers=HEADERS).json()["listings"] == []
        bad = client.put("/alerts/a2", json={"expression": "price <"}, headers=HEADERS)
        assert bad.status_code == 422
        assert "price <" in bad.json()["error"]
        with client.websocket_connect("/told/ana") as socket:
            assert client.post("/listings", json=listing).json() == {"entered": 1, "left": 0}
            told = {"alert": "a1", "change": "entered", "listing": "tv"}
            assert socket.receive_json() == told
            client.post("/listings", json={**listing, "price": 400})
            assert socket.receive_json() == {**told, "change": "left"}
    with clients(tmp_path / "alerts", monkeypatch) as client:
        [kept] = client.get("/alerts", headers=HEADERS).json()
        assert kept["id"] == "ana/a1"
        found = client.put("/alerts/b", json={"expression": "price > 300"}, headers=HEADERS)
        assert found.json()["listings"] == ["tv"]
        assert client.delete("/listings/tv").json() == {"left": 1}
        assert client.delete("/listings/tv").status_code == 404
        assert client.delete("/alerts/a1", headers=HEADERS).status_code == 204
        assert len(client.get("/alerts", headers=HEADERS).json()) == 1
