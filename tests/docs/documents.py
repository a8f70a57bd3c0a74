"""The documents as the tests read them: fenced blocks, the cells of their lines, tables, links.

Kinds of blocks, and what is done with them:

    python       runs by itself; a `text` block right behind it is what it prints
    python continued
                 goes on where the Python block before it ended
    py           a step of CONTRIBUTING's worked example (tests/test_kinds.py)
    python spark the same, in the tests that have a Spark session (tests/spark/test_documents.py)
    python kafka, sh kafka
                 steps of one page, one after another, with a broker (the same tests)
    sh           each line is a command; a `text` block right behind it is what they print
    sh server    commands that speak to a `stentor serve` (tests/docs/test_service_page.py)
    sh application
                 starts an application, and calls it with curl (the same tests)
    match        expression | event | perhaps: at [x, y] | true, false or unknown[, score 2]
    match plane  the same, on a plane
    error        expression, or record as JSON | a piece of the message
    toml         what `stentor stream` runs: it loads; with a name, a file for the examples
    json, jsonl  records that are all read; with a name, a file that examples of every page find
    {toctree}, {include}, {eval-rst}, {literalinclude}, {commands}, {settings}
                 what Sphinx does for the site (tests/docs/test_pages.py, test_site.py)
    (no kind)    a drawing
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / name for name in ("SECURITY.md", "CODE_OF_CONDUCT.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
DATA = ROOT / "docs" / "tutorials" / "data"
KINDS = {"python", "py", "sh", "match", "error", "toml", "json", "jsonl", ""}
KINDS |= {"{toctree}", "{include}", "{eval-rst}", "{literalinclude}", "{commands}", "{settings}"}

_FENCE = re.compile(r"```(\S*) *(.*)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"#+ +(.*)")
_CELLS = re.compile(r" +\| +")


class Line(NamedTuple):
    """One line of a block, and where it stands."""

    page: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number} {self.text[:60]}".rstrip()

    @property
    def cells(self) -> list[str]:
        """What stands between the bars."""
        return _CELLS.split(self.text.strip())


class Link(NamedTuple):
    """What a page links to: a file, a place in a file, or both."""

    page: Path
    target: str

    def __str__(self) -> str:
        return f"{_name(self.page)} {self.target}"


class Block(NamedTuple):
    """What stands between two fences; `number` is that of its first line."""

    page: str
    number: int
    kind: str
    name: str
    text: str
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"

    @property
    def lines(self) -> list[Line]:
        """Its lines that are not empty."""
        numbered = enumerate(self.text.splitlines(), start=self.number)
        return [Line(self.page, number, text) for number, text in numbered if text.strip()]


def blocks(*kinds: str) -> list[Block]:
    """The blocks of these *kinds* in all pages; all blocks where none is named."""
    found = [block for page in PAGES for block in blocks_of(page)]
    return [block for block in found if not kinds or block.kind in kinds]


def blocks_of(page: Path) -> list[Block]:
    """The blocks of *page* in their order; one of kind `text` belongs to the one before it."""
    found: list[Block] = []
    opened: Block | None = None
    between = ""  # what stands after the last block
    for number, line in enumerate(page.read_text("utf-8").splitlines(keepends=True), start=1):
        fence = _FENCE.fullmatch(line.rstrip())
        if opened is None and fence is not None:
            opened = Block(_name(page), number + 1, fence[1], fence[2], "")
        elif opened is not None and line.rstrip() == "```":
            if opened.kind == "text" and found and not between.strip():
                found[-1] = found[-1]._replace(output=opened.text)
            else:
                found.append(opened)
            opened, between = None, ""
        elif opened is not None:
            opened = opened._replace(text=opened.text + line)
        else:
            between += line
    return found if opened is None else [*found, opened._replace(kind="not closed")]


def programs() -> list[list[Block]]:
    """The Python blocks that need nothing else: each with those that continue it."""
    found: list[list[Block]] = []
    for block in blocks("python"):
        if block.name == "continued":
            found[-1].append(block)
        elif not block.name:
            found.append([block])
    return found


def files() -> dict[str, str]:
    """The content of every file that the documents show, by name."""
    return {block.name: block.text for block in blocks("json", "jsonl", "toml") if block.name}


def enter(folder: Path) -> None:
    """Put what examples find into *folder*: files that pages show, and the tutorials' data."""
    for name, text in files().items():
        (folder / name).write_text(text, "utf-8")
    (folder / "data").symlink_to(DATA, target_is_directory=True)


def links() -> list[Link]:
    """The links that lead to no other site, each once for its page."""
    pages = [*PAGES, *NOTEBOOKS]
    found = (Link(page, target) for page in pages for target in _LINK.findall(prose(page)))
    return list(dict.fromkeys(link for link in found if "://" not in link.target))


def anchors(page: Path) -> set[str]:
    """What a link to a place in *page* may have after its #."""
    titles = (_HEADING.fullmatch(line) for line in prose(page).splitlines())
    plain = (re.sub(r"[^\w\- ]", "", title[1].lower()) for title in titles if title)
    return {title.strip().replace(" ", "-") for title in plain}


def table(page: str, first: str) -> list[list[str]]:
    """The rows, without backquotes, of the table of *page* whose header begins with *first*."""
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        for line in [*prose(ROOT / page).splitlines(), ""]
    ]
    start = next(place for place, row in enumerate(rows) if len(row) > 1 and row[0] == first)
    stop = next(place for place in range(start, len(rows)) if len(rows[place]) < 2)
    return [[cell.replace("`", "") for cell in row] for row in rows[start + 2 : stop]]


def prose(page: Path) -> str:
    """The text of *page* without its blocks; of a notebook, without its code."""
    text = page.read_text("utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def code(notebook: Path) -> str:
    """The code of *notebook*."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "code")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()
