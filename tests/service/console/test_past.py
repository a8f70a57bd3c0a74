"""A pipeline's past on the map: the self-contained page, and `stentor console FOLDER`."""

import json
import re
from collections import Counter
from itertools import pairwise

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("starlette")

import httpx

from stentor.demo.afternoon import Afternoon
from stentor.demo.page import TITLE, write_page
from stentor.errors import FolderError
from stentor.service.pages import FILES, bundle, self_contained
from stentor.service.past import past_app
from tests.service.console.conftest import served
from tests.support.recorded_tables import table_rows, write_tables

RECORDS = list(Afternoon(people=80, shops=60, events=80, moves=160, seed=3).records())
pytestmark = pytest.mark.xdist_group("browser")  # one browser, one after the other
READY = "() => window.stentor?.player"


@pytest.fixture(scope="module")
def rows():
    return table_rows(RECORDS)


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("past")
    write_tables(path / "pipeline", rows)
    write_page(path / "pipeline", path / "map.html")
    return path


@pytest.fixture(scope="module")
def asked(folder):
    with served(past_app(folder)) as address, httpx.Client(base_url=address) as client:
        yield client


def test_the_page_moves_and_shows_what_the_tables_hold(folder, rows, open_page, screenshot):
    page = open_page(f"file://{folder / 'map.html'}", scheme="dark")
    page.wait_for_function(READY)
    assert page.title() == TITLE
    # It moves by itself.
    before = page.evaluate("stentor.player.time")
    page.wait_for_function(f"() => stentor.player.time > {before} + 60000")
    page.click("#play")
    # Any moment can be looked at; at the end everything has been told.
    page.evaluate("stentor.player.seek(stentor.recording.stop)")
    assert page.inner_text("#deliveries").replace("\u202f", "") == str(len(rows["deliveries"]))
    page.focus("#slider")
    page.keyboard.press("Home")
    assert page.evaluate("stentor.player.time") == 0
    half = "stentor.player.seek(stentor.recording.stop / 2)"
    page.evaluate(half)
    there = page.evaluate("[...stentor.recording.scene.subscriptions.keys()].sort()")
    assert there == sorted(_subscribed_by(rows, page.evaluate("stentor.player.time")))
    page.click("#play")
    page.wait_for_function("() => stentor.recording.scene.flashes.length > 0")
    screenshot(page, "map-dark")


def _subscribed_by(rows, millis):
    """Who is subscribed so many milliseconds after the first record."""
    start = min(row["time"] for some in rows.values() for row in some) // 1000 * 1000
    now, there = start + millis * 1000, {}
    for row in rows["subscriptions"]:
        if row["time"] // 1000 * 1000 > now:
            break
        if row["change"] == "subscribe":
            there[row["id"]] = row["until"]
        elif row["change"] == "unsubscribe":
            there.pop(row["id"], None)
    return [id for id, until in there.items() if until is None or until > now]


def test_who_was_told_is_shown_by_hand_and_by_keys(folder, rows, open_page, screenshot):
    page = open_page(f"file://{folder / 'map.html'}")
    page.wait_for_function(READY)
    page.click("#play")
    shops = Counter(str(row["attributes"]["loc"]) for row in rows["events"])
    alone = {r["id"] for r in rows["events"] if shops[str(r["attributes"]["loc"])] == 1}
    counts = Counter(row["event"] for row in rows["deliveries"] if row["event"] in alone)
    event, told = counts.most_common(1)[0]
    script = """(id) => {
      const { player, stage, recording } = stentor;
      player.seek(recording.rows.find((row) => row.id === id).time + 1);
      const { location } = recording.scene.events.get(id);
      stage.view.lookAt(location, 15);
      const [x, y] = stage.view.pixel(location);
      const [cx, cy] = stage.view.pixel(stage.middle());
      stage.view.pan(cx - x, cy - y);
      return stage.view.pixel(location);
    }"""
    x, y = page.evaluate(script, event)
    page.locator(".map-moving").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#side h3")
    page.keyboard.press("Escape")
    assert page.is_hidden("#side")
    page.mouse.click(x, y)
    heading = page.inner_text("#side h3")
    assert re.sub(r"\s", "", heading) == f"Whowastold({told})"
    page.click("#side .list button >> nth=0")
    assert page.inner_text("#side h2").startswith("● ")
    screenshot(page, "map-light")


def test_the_console_of_a_folder_follows_what_is_committed(rows, tmp_path, open_page, screenshot):
    early = {name: [r for r in some if r["batch"] < 3] for name, some in rows.items()}
    late = {name: [r for r in some if r["batch"] >= 3] for name, some in rows.items()}
    write_tables(tmp_path, early)
    with served(past_app(tmp_path)) as address:
        page = open_page(address, scheme="dark")
        page.wait_for_function(READY)
        assert page.evaluate("stentor.recording.rows.length") > 0
        write_tables(tmp_path, late)
        everything = sum(len(some) for some in rows.values())
        page.wait_for_function(f"() => stentor.recording.rows.length === {everything}")
        page.wait_for_function("() => stentor.player.isPlaying")
        # Why a delivery came: asked of the server.
        delivery = next(
            r for r in reversed(rows["deliveries"])
            if r["change"] == "matched" and r["event"] in {e["id"] for e in rows["events"]}
        )  # fmt: skip
        page.evaluate("([id]) => stentor.player.choose({ kind: 'event', id })", [delivery["event"]])
        page.click("#side .list button >> nth=0")
        page.wait_for_selector("#side .explanation .yes")
        screenshot(page, "console-folder")
        page.close()  # it follows the server, which goes now


def test_it_fits_a_phone(folder, open_page, screenshot):
    page = open_page(f"file://{folder / 'map.html'}", phone=True)
    page.wait_for_function(READY)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    screenshot(page, "map-phone")


def test_the_page_holds_data_that_no_parser_takes_for_markup():
    data = {"recording": {"title": "</script><script>alert(1)</script>", "rows": []}}
    page = self_contained("past.html", data, title="<b>")
    assert "<script>alert" not in page
    assert "<title>&lt;b&gt;</title>" in page
    block = re.search(r'id="recording">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(block) == data["recording"]
    assert "http://" not in re.sub(r"http://www\.w3\.org/\d+/svg", "", page)
    assert re.search(r'src=|href="(?!data:,)', page) is None


def test_modules_that_are_put_together_keep_their_names_apart():
    text = bundle("past")
    for name in ("view", "regions", "scene", "painter", "stage", "recording", "page"):
        assert text.count(f"const _{name} = ") == 1
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)


def test_outlines_are_small_and_stay_on_the_globe():
    text = (FILES / "outlines.geojson").read_text("utf-8")
    assert len(text.encode()) < 200_000
    for feature in json.loads(text)["features"]:
        for ring in (r for p in feature["geometry"]["coordinates"] for r in p):
            assert ring[0] == ring[-1]
            assert all(-180 <= x <= 180 and -90 <= y <= 90 for x, y in ring)
            # Nothing runs across the map but Antarctica's own edge.
            wide = max(abs(a[0] - b[0]) for a, b in pairwise(ring))
            assert wide < 90 or feature["properties"]["name"] == "Antarctica"


def test_pages_are_served_under_a_strict_policy(asked):
    for path in ("/", "/past.js", "/console.css", "/outlines.geojson"):
        answer = asked.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
    for path in ("/pages.py", "/..%2fpages.py", "/console/past.js", "/x.js"):
        assert asked.get(path).status_code == 404
    assert asked.get("/", headers={"Host": "elsewhere.example"}).status_code == 400


@pytest.mark.parametrize("after", ["x", "1,2", "1,2,3,4", "1,2,three"])
def test_a_cursor_that_cannot_be_read_is_refused(asked, after):
    answer = asked.get("/v1/recording", params={"after": after})
    assert answer.status_code == 400
    assert "cursor_text" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"expression": "price <", "event": {"id": "e"}}, "expected"),
        ({"event": {"id": "e"}}, "expression"),
        ([], ""),
        ({"expression": "TRUE", "event": 5}, ""),
    ],
)
def test_questions_that_make_no_sense_are_refused(asked, question, said):
    answer = asked.post("/v1/explain", json=question)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(FolderError, match="holds no tables of a pipeline"):
        past_app(tmp_path)
