"""A real Chromium for the console's pages, and servers on the loopback for it to look at.

Debian's chromium, or the one that Playwright finds; `make browser` installs one. Where there is
none these tests are skipped, loudly; with STENTOR_REQUIRE_BROWSER (CI, where one can be had) they
fail.
"""

import os
import shutil
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest

MISSING = (
    "no Chromium: the console's pages are NOT tested in a browser. Install one with `make browser` "
    "(Debian's chromium, or Playwright's own), or name one in STENTOR_CHROMIUM"
)
#: Build output: what the pages looked like.
SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"


def browser_path(playwright):
    """The Chromium to start; None where there is none."""
    named = os.environ.get("STENTOR_CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("chromium-browser")
    own = playwright.chromium.executable_path
    return found or (own if own and Path(own).exists() else None)


def missing():
    if os.environ.get("STENTOR_REQUIRE_BROWSER"):
        pytest.fail(MISSING)
    warnings.warn(pytest.PytestWarning(MISSING), stacklevel=1)
    pytest.skip(MISSING)


@pytest.fixture(scope="module")
def chromium():
    """A browser; Playwright's loop runs in this thread meanwhile, so it goes with the module."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing()
    with sync_playwright() as playwright:
        path = browser_path(playwright)
        if path is None:
            missing()
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens pages; whatever goes wrong in one, or leaves the loopback, fails the test."""
    contexts, faults = [], []

    def opened(address, *, scheme="light", phone=False):
        size = {"width": 390, "height": 844} if phone else {"width": 1360, "height": 840}
        context = chromium.new_context(viewport=size, color_scheme=scheme, has_touch=phone)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda said: said.type == "error" and faults.append(said.text))
        page.refused = faults
        page.on("request", lambda asked: _is_far(asked.url) and faults.append(asked.url))
        page.goto(address)
        return page

    opened.faults = faults
    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def _is_far(address):
    return not address.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))


@pytest.fixture(scope="session")
def screenshot():
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=SCREENSHOTS / f"{name}.png")


@contextmanager
def served(app):
    """The address at which *app* is served, in a thread of this process."""
    import uvicorn

    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server, listener = uvicorn.Server(config), config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
