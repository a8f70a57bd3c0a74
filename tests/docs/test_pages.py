"""What the documents list and link to is what there is."""

import dataclasses
import importlib
import inspect
import re
import tomllib

import pytest

import stentor.errors
from stentor import Engine, Limits
from stentor.errors import StentorError
from stentor.language.lexer import RESERVED
from stentor.language.predicates.calls import NAMES
from stentor.model import Kind
from stentor.wire.limits import RecordLimits
from tests.docs.documents import (
    NOTEBOOKS,
    PAGES,
    ROOT,
    Link,
    anchors,
    blocks,
    blocks_of,
    code,
    links,
    table,
)

DOCS = ROOT / "docs"
LANGUAGE, ENGINE, FORMATS = "docs/language.md", "docs/engine.md", "docs/formats.md"


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("link", links(), ids=str)
def test_a_link_leads_somewhere(link: Link) -> None:
    path, _, anchor = link.target.partition("#")
    linked = link.page.parent / path if path else link.page
    assert linked.exists()
    assert not anchor or anchor in anchors(linked)


def test_every_page_beside_the_readme_and_the_site_are_linked_from_it() -> None:
    readme = ROOT / "README.md"
    linked = {ROOT / link.target for link in links() if link.page == readme}
    beside = {page for page in PAGES if page.parent == ROOT and page != readme}
    assert beside | {DOCS / "index.md"} <= linked


@pytest.mark.parametrize(
    ("page", "limits"), [(LANGUAGE, Limits()), (FORMATS, RecordLimits())], ids=[LANGUAGE, FORMATS]
)
def test_every_limit_is_listed_with_its_default(page: str, limits: Limits | RecordLimits) -> None:
    defaults = {field.name: getattr(limits, field.name) for field in dataclasses.fields(limits)}
    listed = {name: default for name, default, _ in table(page, "limit")}
    assert listed == {
        name: f"{default:,}" if isinstance(default, int) else "Limits()"
        for name, default in defaults.items()
    }


def test_every_function_is_in_the_language() -> None:
    grammar = text_of(LANGUAGE).partition("## Grammar")[2]
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", grammar)] == []


def test_every_reserved_word_and_every_type_is_in_the_language() -> None:
    words = re.search(r"reserved.*?backquotes: ((?:`[A-Z]+`\s?)+)", text_of(LANGUAGE), re.DOTALL)
    assert words
    assert set(re.findall(r"[A-Z]+", words[1])) == set(RESERVED.values())
    kinds = re.search(r"The types are (.*?)\.", text_of(LANGUAGE), re.DOTALL)
    assert kinds
    assert set(re.findall(r"`(\w+)`", kinds[1])) == set(Kind)


def test_everything_an_engine_does_is_on_its_page() -> None:
    public = [name for name in dir(Engine) if not name.startswith("_")]
    page = text_of(ENGINE)
    assert [name for name in public if not re.search(rf"`{name}\b|\.{name}\(", page)] == []


def test_every_setting_of_an_engine_is_listed_with_its_default() -> None:
    parameters = inspect.signature(Engine).parameters.values()
    listed = {name: default for name, default, _ in table(ENGINE, "setting")}
    assert listed.keys() == {one.name for one in parameters}
    for one in parameters:
        default = f'"{one.default}"' if isinstance(one.default, str) else str(one.default)
        shown = {"limits": "RecordLimits()", "clock": "time.time"}
        assert listed[one.name] == shown.get(one.name, default)


def test_every_page_is_in_the_site() -> None:
    listed = {line.text for block in blocks("{toctree}") for line in block.lines}
    found = [*DOCS.rglob("*.md"), *NOTEBOOKS]
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in found}
    assert pages - {"index"} == {line for line in listed if not line.startswith(":")}


def test_everything_that_the_reference_names_is_there() -> None:
    named = [
        line.text.split("::")[1].strip()
        for block in blocks("{eval-rst}")
        for line in block.lines
        if line.text.startswith(".. auto")
    ]
    assert len(named) > 20
    for name in named:
        if name != "stentor.errors":
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name


#: What the promise covers: the names that these export, but for modules.
PUBLIC = ("", ".aio", ".broker", ".client", ".engine", ".model", ".pipeline", ".pipeline.tables")
#: Pages that show the inside to those who work on it.
INSIDE = ("CONTRIBUTING.md", "ARCHITECTURE.md", "docs/packed.md", "docs/papers/")
IMPORTS = re.compile(r"^\s*from (stentor(?:\.\w+)*) import ([\w, ]+)$", re.MULTILINE)


def promised() -> list[object]:
    """What the page of the Python API names."""
    names = [
        line.text.split("::")[1].strip()
        for block in blocks_of(DOCS / "reference" / "api.md")
        for line in block.lines
        if line.text.startswith(".. auto")
    ]
    return [_named(name) for name in names]


def _named(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _is_promised(module: str, name: str, known: list[object]) -> bool:
    found = getattr(importlib.import_module(module), name, None)
    if found is None and (module, name) != ("stentor.model", "HERE"):
        found = importlib.import_module(f"{module}.{name}")
    return inspect.ismodule(found) or any(found is one for one in known)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_name_that_a_public_module_exports_is_promised(module: str) -> None:
    known = promised()
    exported = importlib.import_module(f"stentor{module}").__all__
    missing = [name for name in exported if not _is_promised(f"stentor{module}", name, known)]
    assert missing == []


def test_every_name_that_an_example_imports_is_promised() -> None:
    known = promised()
    found = [
        (block.page, module, name.split(" as ")[0].strip())
        for block in blocks("python")
        if not block.page.startswith(INSIDE)
        for module, names in IMPORTS.findall(block.text)
        for name in names.split(",")
    ]
    found += [
        (path.name, module, name.split(" as ")[0].strip())
        for path in NOTEBOOKS
        for module, names in IMPORTS.findall(code(path))
        for name in names.split(",")
    ]
    assert len(found) > 30
    errors = {name for name in vars(stentor.errors) if name.endswith("Error")}
    missing = [one for one in found if one[2] not in errors and not _is_promised(*one[1:], known)]
    assert missing == []


def test_every_error_has_the_kind_it_also_is_a_cause_and_a_remedy() -> None:
    errors = {
        name: one
        for name, one in vars(stentor.errors).items()
        if inspect.isclass(one) and issubclass(one, StentorError)
    }
    rows = table("docs/reference/errors.md", "error")
    assert [row[0] for row in rows if rows.count(row) > 1] == []
    assert {row[0] for row in rows} == errors.keys()
    for name, kind, cause, remedy in rows:
        assert kind in [one.__name__ for one in errors[name].__mro__[1:]], name
        assert cause, name
        assert remedy, name


def test_every_kind_of_refusal_of_a_service_has_a_remedy() -> None:
    sources = (ROOT / "src" / "stentor" / "service").rglob("*.py")
    text = "".join(path.read_text("utf-8") for path in sources)
    refused = set(re.findall(r'RefusedError\(\s*\d+, "(\w+)"', text))
    rows = table("docs/reference/errors.md", "kind")
    of_errors = {
        row[0].removesuffix("Error").lower() for row in table("docs/reference/errors.md", "error")
    }
    assert {kind for kind, _, _ in rows} == refused - of_errors | {"conflict"}
    for kind, status, _ in rows:
        assert kind == "conflict" or re.search(rf'RefusedError\(\s*{status}, "{kind}"', text), kind


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    lab = tomllib.loads(text_of("lab/pyproject.toml"))
    assert "version" not in lab["project"]
    assert lab["tool"]["hatch"]["version"]["path"] == "../pyproject.toml"
    assert f"\nversion: {project['version']}\n" in text_of("CITATION.cff")
    assert f"\n## [{project['version']}] - " in text_of("CHANGELOG.md")


def test_supported_versions_are_those_of_the_package() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    listed = {name: versions for name, versions, _ in table("docs/reference/versions.md", "")}
    assert project["requires-python"] == ">=3.11"
    assert listed["Python"].startswith("3.11 to ")
    needed = " ".join([*project["dependencies"], *project["optional-dependencies"]["spark"]])
    for name, requirement in (
        ("Numba", r"numba>=0\.63,<0\.69"),
        ("NumPy", r"numpy>=2\.1"),
        ("Arrow (pyarrow)", r"pyarrow>=22"),
        ("Spark", r"pyspark>=4\.1,<4\.3"),
        ("Delta (deltalake)", r"deltalake>=1\.0"),
    ):
        least = re.search(requirement, needed)
        assert least, name
        assert re.search(r"[\d.]+", least[0].partition(">=")[2])[0] in listed[name]  # type: ignore[index]
