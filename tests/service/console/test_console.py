"""The console in a browser, against a real server: draw, publish, see the flash, explain."""

import re

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.support.servers import Server

pytestmark = pytest.mark.xdist_group("browser")  # one browser, one after the other
LIVE = "() => document.querySelector('#state').dataset.state === 'live'"
WORDS = (
    "() => stentor.feed.entries.map(({kind, event, subscription}) => [kind, event, subscription])"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with a console, in a process of its own."""
    with Server(tmp_path_factory.mktemp("console"), index="scan", console=True) as one:
        yield one


@pytest.fixture
def server(served):
    with served.http() as client:
        yield client


@pytest.fixture
def console(server, open_page):
    """Opens the console on an empty server, looking at the quay."""

    for told in server.get("/v1/subscriptions").json()["subscriptions"]:
        server.delete(f"/v1/subscriptions/{told['id']}")

    def opened(**options):
        page = open_page(str(server.base_url), **options)
        page.wait_for_function(LIVE)
        page.evaluate("stentor.stage.view.lookAt([11.6, 58.2], 13)")
        page.evaluate("stentor._hasFitted = true")
        return page

    return opened


def pixel(page, east=0, north=0):
    """Where on the page a location so many pixels from the middle of the open map is."""
    middle = "() => stentor.stage.view.pixel(stentor.stage.middle())"
    x, y = page.evaluate(middle)
    return [x + east, y - north]


def location(page, east=0, north=0):
    return page.evaluate("(at) => stentor.stage.view.locationAt(...at)", pixel(page, east, north))


FLASHED = """([event, subscription]) => stentor.scene.flashes.some(
  (flash) => flash.event === event && flash.subscription === subscription)"""


def flashed(page, event, subscription):
    page.wait_for_function(FLASHED, arg=[event, subscription])


def test_draw_publish_see_the_flash_and_why(console, server, screenshot):
    page = console(scheme="dark")
    page.click("[data-tool=circle]")
    page.mouse.move(*pixel(page))
    page.mouse.down()
    page.mouse.move(*pixel(page, 160), steps=4)
    page.mouse.up()
    expression = page.input_value("#expression")
    assert re.fullmatch(r"ST_DWithin\(loc, ST_Point\(\S+, \S+\), \d+\)", expression)
    page.fill("#expression", expression + " AND price < 300")
    page.fill("#subscription-id", "near")
    page.click("#page-new button.main")
    page.wait_for_selector("#detail .expression")
    assert server.get("/v1/subscriptions/near").json()["subscription"]["expression"] == (
        expression + " AND price < 300"
    )
    server.put("/v1/subscriptions/far", json={"expression": "price > 1000"})
    event = {"id": "e1", "text": "iPad, as new", "price": 250, "loc": location(page, 40, 30)}
    assert server.post("/v1/events", json=event).json()["results"] == [{"id": "e1", "matched": 1}]
    flashed(page, "e1", "near")
    page.wait_for_timeout(400)
    screenshot(page, "console-dark")
    # The delivery was the console's own: it is acknowledged.
    page.wait_for_function("() => stentor.client.seen > 0")
    # Click the delivery: why.
    page.click("#tab-activity")
    page.click("#page-activity .list button:has-text('near')")
    page.wait_for_selector("#detail .explanation .yes")
    assert "near wants e1" in page.inner_text("#detail")
    assert page.locator("#detail .findings .yes").count() == 2
    # Click the event on the map: who, and why not those.
    page.mouse.click(*pixel(page, 40, 30))
    page.wait_for_selector("#detail h3:has-text('why not those')")
    told = page.inner_text("#detail")
    assert "Who wants it (1)" in told
    assert "far" in told
    page.click("#detail .list button:has-text('far')")
    page.wait_for_selector("#detail .explanation .no")
    assert "price > 1000" in page.inner_text("#detail")


def test_everything_by_keyboard(console, server, screenshot):
    page = console()
    page.keyboard.press("b")
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    for _ in range(14):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'expression'")
    assert page.input_value("#expression").startswith("ST_Within(loc, ST_MakeEnvelope(")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#detail .expression")
    assert server.get("/v1/subscriptions/box-1").status_code == 200
    # An event into the middle of it, by the cross.
    page.keyboard.press("e")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("() => stentor.scene.flashes.length > 0")
    screenshot(page, "console-light")
    # Through the list to the delivery.
    page.keyboard.press("1")
    page.wait_for_selector("#page-activity .list button:has-text('box-1')")
    page.locator("#page-activity .list button").first.focus()
    while "box-1" not in page.evaluate("document.activeElement.innerText"):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail .explanation .yes")
    page.keyboard.press("Escape")
    assert page.is_hidden("#detail")
    page.keyboard.press("t")
    assert page.get_attribute("html", "data-theme") == "dark"
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    # A polygon: three corners, then the last one again.
    page.keyboard.press("p")
    for keys in (["ArrowLeft"] * 4, ["ArrowRight"] * 8, ["ArrowUp"] * 6):
        for key in keys:
            page.keyboard.press(key)
        page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#expression').value.includes('POLYGON')")


def test_a_mistake_is_underlined_and_a_try_shows_what_would_have_matched(
    console, server, screenshot
):
    page = console(scheme="dark")
    events = [
        {"id": f"try-{n}", "price": 100 * n, "loc": location(page, 30 * n, 0)} for n in range(1, 6)
    ]
    server.post("/v1/events", json=events)
    page.keyboard.press("/")
    page.keyboard.type("price <")
    page.wait_for_selector(".editor mark")
    assert page.get_attribute("#expression", "aria-invalid") == "true"
    assert page.inner_text("#expression-says")
    page.keyboard.type(" 350 AND price >= 100 AND price IN (100, 200, 300, 400, 500)")
    page.wait_for_selector("#expression-says.good")
    assert page.inner_text("#expression-says").startswith("It would have matched 3 of the")
    assert sorted(page.evaluate("[...stentor.stage.marks.preview]")) == ["try-1", "try-2", "try-3"]
    screenshot(page, "console-try")
    assert server.get("/v1/subscriptions").json()["subscriptions"] == []
    page.refused.clear()  # a browser's own log tells of each answer that is a refusal


def test_subscribers_move_and_tell_what_they_lose(console, server, screenshot):
    page = console()
    here, there = location(page), location(page, 300, 0)
    body = {"expression": "ST_DWithin(loc, here(), 600)", "at": there, "client": "console"}
    until = "2099-01-01T00:00:00Z"
    server.put("/v1/subscriptions/walker", json=body)
    server.post("/v1/events", json={"id": "cafe", "loc": here, "until": until})
    page.wait_for_function("() => stentor.scene.events.has('cafe')")
    server.post("/v1/subscriptions/walker/move", json={"at": here})
    flashed(page, "cafe", "walker")
    page.wait_for_function("() => stentor.scene.subscriptions.get('walker').from !== null")
    server.post("/v1/subscriptions/walker/move", json={"at": there})
    page.wait_for_function("() => stentor.feed.entries.some(({ change }) => change === 'removed')")
    server.delete("/v1/subscriptions/walker")
    page.wait_for_function("() => !stentor.scene.subscriptions.has('walker')")


def test_a_phone_has_all_of_it(console, screenshot):
    page = console(phone=True, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.tap("#tab-new")
    assert page.is_visible("#expression")
    page.tap("#tab-health")
    page.wait_for_function("() => document.querySelector('#page-health output').textContent !== ''")
    screenshot(page, "console-phone")


def test_health_and_brokers_are_told(console, server, screenshot):
    page = console(scheme="dark")
    server.put("/v1/subscriptions/all", json={"expression": "TRUE", "client": "queued"})
    server.post("/v1/events", json=[{"id": f"h{n}", "n": n} for n in range(50)])
    page.click("#tab-health")
    page.wait_for_selector("#page-health td:has-text('queued')")
    row = page.locator("#page-health tr", has_text="queued").last.inner_text()
    assert int(row.split("\t")[1].replace("\u202f", "")) >= 50
    page.wait_for_timeout(2500)
    screenshot(page, "console-health")
    page.click("#tab-brokers")
    page.wait_for_function("() => document.querySelector('#page-brokers p').textContent !== ''")
    screenshot(page, "console-brokers")


def test_a_client_goes_on_where_it_stopped_after_a_kill(console, server, served):
    page = console()
    body = {"expression": "lost = 1", "client": "console"}
    assert server.put("/v1/subscriptions/resumed", json=body).status_code == 201
    listen = (
        "() => { window.told = []; stentor.client.on('delivery', ({ seq }) => told.push(seq)); }"
    )
    page.evaluate(listen)
    server.post("/v1/events", json=[{"id": f"before-{n}", "lost": 1} for n in range(3)])
    page.wait_for_function("() => told.length === 3")
    own = "stentor.health.stats?.clients.find(({ client }) => client === 'console')"
    page.wait_for_function(f"() => {own}?.queued === 0")
    served.kill()
    page.wait_for_function("() => stentor.client.state === 'lost'")
    # What is published while it is away waits for it, what it sends itself is sent later.
    page.evaluate("() => { window.sent = stentor.client.publish({ id: 'while-away', lost: 1 }); }")
    served.start()
    with served.http() as again:
        again.post("/v1/events", json={"id": "after", "lost": 1})
    page.wait_for_function(LIVE)
    assert page.evaluate("() => sent.then(({ id }) => id)") == "while-away"
    page.wait_for_function("() => told.length === 5")
    told = page.evaluate("told")
    assert told == list(range(told[0], told[0] + 5))
    page.refused.clear()  # the browser's log tells of connections that were refused


def test_two_windows_share_one_console(console):
    first = console()
    second = console()
    first.wait_for_function("() => stentor.client.deliveries === false")
    first.wait_for_function(LIVE)
    assert second.evaluate("stentor.client.deliveries") is True


EXPRESSIONS = [
    "ST_DWithin(loc, ST_Point(151.2, -33.9), 1000) AND price < 3",
    "ST_DWithin(ST_Point(1.5, 2), loc, 20.5) OR ST_DWithin(loc, here(), 300)",
    "NOT ST_Within(loc, ST_MakeEnvelope(170, -20, -170, 0))",
    "text = 'ST_MakeEnvelope(0, 0, 9, 9)' AND ST_Covers(ST_MakeEnvelope(0, 0, 10, 5), loc)",
    "ST_Contains(ST_GeomFromText('POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (3 3, 6 3, 6 6, 3 3))'), loc)",
    "weight(st_dwithin(`a place`, here(), 1e3), 2) AND NOT (kind = 'it''s' OR has_any(text, 'x'))",
    "price < 300",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_regions_are_read_as_the_server_reads_them(any_page, server, expression):
    """The editor shows a region before the server is asked; both mean the same."""
    question = {"expression": expression, "at": [1, 2]}
    told = server.post("/v1/match", json=question).json()["regions"]
    read = "async (text) => (await import('/regions.js')).regionsOf(text)"
    found = any_page.evaluate(read, expression)
    for one in told:
        del one["attribute"]
        if one.get("here"):
            one["centre"] = None
    assert sorted(map(str, _plain(found))) == sorted(map(str, _plain(told)))


def _plain(regions):
    """Regions with their fields in one order and their numbers as floats."""
    return [{name: _float(one[name]) for name in sorted(one)} for one in regions]


def _float(value):
    if isinstance(value, list):
        return [_float(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.fixture(scope="module")
def any_page(served, chromium):
    page = chromium.new_page()
    page.goto(served.url)
    yield page
    page.close()


def test_a_drawn_region_reads_back_as_itself(any_page):
    script = """async () => {
      const { predicateOf, regionsOf } = await import('/regions.js');
      const drawn = [
        { kind: 'circle', centre: [11.5, 58.25], radius: 420, here: false, negated: false },
        { kind: 'box', west: 179, south: -2, east: -179, north: 3, negated: false },
        { kind: 'polygon', rings: [[[0, 0], [2, 0], [2, 2], [0, 0]]], negated: false },
      ];
      return [drawn, drawn.flatMap((region) => regionsOf(predicateOf(region, 'a place')))];
    }"""
    drawn, read = any_page.evaluate(script)
    assert _plain(drawn) == _plain(read)
