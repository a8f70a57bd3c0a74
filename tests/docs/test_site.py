"""The site is built, without its notebooks being run, and read as a browser shows it."""

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from typer.main import get_command

from stentor.cli.app import app
from stentor.service.settings import ServeSettings
from tests.docs.documents import ROOT

BUILDERS = ("furo", "myst_nb", "sphinx")  # requirements/docs.txt
MARKUP = re.compile(r"^\.\. \w|\.\. [\w-]+::|::$|`|\]\(|\|\s*-{3}|\*\*\w+\*\*")

pytestmark = [
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(
        "STENTOR_REQUIRE_SITE" not in os.environ
        and not all(importlib.util.find_spec(name) for name in BUILDERS),
        reason="what builds the site is not installed: make docs",
    ),
]


class Shown(HTMLParser):
    """What a page shows: `text` outside of code, and the `cells` of its tables."""

    UNREAD = frozenset({"code", "pre", "script", "style", "svg", "title"})
    EMPTY = frozenset({"br", "hr", "img", "input", "link", "meta", "path", "use", "wbr"})

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.text = ""
        self.cells: list[str] = []
        self.tables = 0
        self.problems: list[str] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        shown_as = dict(attrs).get("class") or ""
        if "problematic" in shown_as or "system-message" in shown_as:
            self.problems.append(shown_as)
        self.tables += tag == "table"
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in self.EMPTY:
            self.inside.append(tag)
        if tag in ("p", "li", "td"):
            self.text += "\n"

    def handle_endtag(self, tag: str) -> None:
        while tag in self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "td" in self.inside or "th" in self.inside:
            self.cells[-1] += data
        if not self.UNREAD.intersection(self.inside):
            self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shown]:
    """The pages of the site by name; a warning of the build is a failure."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    command += ["--builder", "html", "-D", "nb_execution_mode=off", "-d", str(folder / "trees")]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(folder / "pages")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = folder / "pages"
    return {page.relative_to(pages).as_posix(): Shown(page) for page in pages.rglob("*.html")}


def test_no_page_shows_markup_that_was_not_read(site: dict[str, Shown]) -> None:
    found = [
        f"{name}: {line.strip()[:80]}"
        for name, shown in site.items()
        for line in shown.text.splitlines()
        if MARKUP.search(line.strip())
    ]
    assert found == []
    assert [(name, shown.problems) for name, shown in site.items() if shown.problems] == []


def test_every_option_of_every_command_is_in_a_table_of_the_site(site: dict[str, Shown]) -> None:
    shown = site["reference/commands.html"]
    options = " ".join(shown.cells).replace(",", " ").split()
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert shown.tables == 1 + sum(bool(command.params) for command in commands.values())
    for name, command in commands.items():
        assert f"stentor {name}" in shown.text
        for one in command.params:
            assert {opt for opt in one.opts if opt.startswith("-")} <= set(options), (
                name,
                one.opts,
            )


def test_every_setting_of_a_service_is_in_a_table_of_the_site(site: dict[str, Shown]) -> None:
    cells = {cell.strip() for cell in site["reference/settings.html"].cells}
    keys = {one.encode_name for one in msgspec.structs.fields(ServeSettings)}
    sections = {"queue", "limits", "tls", "jwt", "webhooks", "link_queue", "links"}
    assert keys - sections <= cells
    assert "a value" not in " ".join(cells)  # of no kind that the table knows a word for
    assert {"deliveries", "in_flight", "certificate", "audience", "attempts", "ca_file"} <= cells
