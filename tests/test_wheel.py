"""The wheel: it holds the product alone, and works where nothing but its dependencies is."""

import json
import re
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.docs.documents import ROOT, blocks

#: What no test of a bare installation may find.
EXTRAS = ["deltalake", "matplotlib", "pandas", "pyspark", "rich", "typer"]
#: Runs pieces of Python, one after another, and tells what each prints.
RUNNER = """
import contextlib, io, json, sys
printed = []
for text in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(text, "README.md", "exec"), {"__name__": "__main__"})
    printed.append(output.getvalue())
print(json.dumps(printed))
"""

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("stentor-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, its dependencies, and nothing else.

    Dependencies are those of this environment, linked: pip looks whether they are what is needed.
    """
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=True)
    base = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=base))
    for name in sorted(needed_by(wheel)):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (packages / top).symlink_to(found.locate_file(top))
    interpreter = Path(sysconfig.get_path("scripts", "venv", vars=base)) / "python"
    command = [str(interpreter), "-m", "pip", "install", "--no-index", "--quiet", str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return interpreter


def needed_by(wheel: Path) -> set[str]:
    """The packages that *wheel* needs without any extra, and those that they need."""
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    waiting = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    found: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = re.match(r"[\w.-]+", requirement)[0]
        if "extra ==" not in requirement and name not in found:
            found.add(name)
            waiting += distribution(name).requires or []
    return found


def run(python: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(python), "-I", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_the_wheel_holds_neither_laboratory_nor_tests(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = [Path(name) for name in archive.namelist()]
    assert {name.parts[0].partition("-")[0] for name in names} == {"stentor"}
    packages = {part for name in names for part in name.parts[:-1]}
    assert not packages & {"lab", "stentor_lab", "bench", "workloads", "testing", "tests"}
    assert Path("stentor/py.typed") in names
    in_source = {path.relative_to(ROOT / "src") for path in (ROOT / "src/stentor").rglob("*.py")}
    assert in_source == {name for name in names if name.suffix == ".py"}


def test_the_examples_of_the_readme_and_of_the_first_tutorial_need_no_extra(
    python: Path, tmp_path: Path
) -> None:
    pages = {"README.md", "docs/tutorials/first_alerts.md"}
    examples = [block for block in blocks("python") if block.page in pages and not block.name]
    assert {block.page for block in examples} == pages
    texts = [f"import os; os.chdir({str(tmp_path)!r})\n{block.text}" for block in examples]
    done = run(python, "-c", RUNNER, text=json.dumps(texts))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [block.output or "" for block in examples]


def test_where_an_extra_is_missing_its_name_is_told(python: Path) -> None:
    for name in EXTRAS:
        assert run(python, "-c", f"import {name}").returncode == 1
    for command in ([str(python.with_name("stentor"))], [str(python), "-I", "-m", "stentor"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "pip install 'stentor[cli]'" in done.stderr
    done = run(python, "-c", "import stentor.pipeline; stentor.pipeline.start")
    assert "pip install 'stentor[spark]'" in done.stderr
