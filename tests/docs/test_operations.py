"""What operators copy names what there is: metrics, commands, settings, files."""

import json
import re
import runpy
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from stentor.cli.app import app
from stentor.pipeline.config.file import load
from stentor.pipeline.stream.metrics import NAMES
from stentor.service.settings import ServeSettings, TomlSection
from stentor.service.settings import _read as read_serve
from tests.docs.documents import DATA, ROOT
from tests.support.servers import Server

GRAFANA = ROOT / "examples" / "grafana"
KUBERNETES = ROOT / "examples" / "kubernetes"
#: What Prometheus makes of a histogram.
_PARTS = re.compile(r"_(bucket|sum|count)$")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What a stream and a service tell Prometheus; asked of a real service."""
    folder = tmp_path_factory.mktemp("service")
    with Server(folder, index="scan") as server, server.http() as http:
        http.post("/v1/events", json={"id": "e1"})
        text = http.get("/metrics").text
    return set(NAMES) | set(re.findall(r"^# TYPE (stentor_\w+)", text, re.MULTILINE))


def named_in(text: str) -> set[str]:
    return {_PARTS.sub("", name) for name in re.findall(r"\bstentor_\w+", text)}


def test_the_dashboard_asks_for_metrics_that_there_are(known: set[str]) -> None:
    dashboard = json.loads((GRAFANA / "stentor.json").read_text("utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
        for name in named_in(target["expr"])
    }
    assert asked <= known
    assert known >= {"stentor_requests_total", "stentor_commit_latency_seconds"}
    assert set(NAMES) - asked <= {"stentor_records_total", "stentor_changes_total",
                                  "stentor_last_batch", "stentor_logical_time_seconds"}  # fmt: skip
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(numbers) == len(set(numbers))
    assert all(target["expr"].count("(") == target["expr"].count(")")
               for panel in dashboard["panels"] for target in panel.get("targets", []))  # fmt: skip


def test_alerts_ask_for_metrics_that_there_are_and_the_guide_has_each(known: set[str]) -> None:
    text = (GRAFANA / "alerts.yml").read_text("utf-8")
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    asked = {name for rule in rules for name in named_in(rule["expr"])}
    assert asked <= known
    guide = (ROOT / "docs" / "howto" / "monitoring.md").read_text("utf-8")
    assert [rule["alert"] for rule in rules if f"`{rule['alert']}`" not in guide] == []


def manifests() -> list[tuple[Path, dict[str, Any]]]:
    return [
        (path, found)
        for path in sorted(KUBERNETES.glob("*.yaml"))
        for found in yaml.safe_load_all(path.read_text("utf-8"))
    ]


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
    return [*pod.get("initContainers", []), *pod.get("containers", [])]


def test_manifests_parse_and_belong_together() -> None:
    assert {path.name for path, _ in manifests()} == {"service.yaml", "stream.yaml"}
    for path, manifest in manifests():
        assert {"apiVersion", "kind", "metadata"} <= manifest.keys(), path
        assert manifest["metadata"]["name"]
        pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
        claims = manifest.get("spec", {}).get("volumeClaimTemplates", [])
        known = {one["name"] for one in pod.get("volumes", [])}
        known |= {one["metadata"]["name"] for one in claims}
        for one in containers(manifest):
            assert {mount["name"] for mount in one["volumeMounts"]} <= known, one["name"]
        if pod:
            labels = manifest["spec"]["template"]["metadata"]["labels"]
            assert manifest["spec"]["selector"]["matchLabels"] == labels


def test_manifests_name_commands_and_options_that_there_are() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    ran = []
    for _, manifest in manifests():
        for one in containers(manifest):
            arguments = one["args"]
            if one.get("command") == ["sh", "-c"]:
                words = shlex.split(arguments[0])
                arguments = words[words.index("stentor") + 1 :]
            commands[arguments[0]].make_context(arguments[0], list(arguments[1:]))
            ran.append(arguments[0])
    assert set(ran) == {"serve", "stream", "key"}


def test_settings_in_manifests_are_read_without_a_mistake(tmp_path: Path) -> None:
    files = {
        name: text
        for _, manifest in manifests()
        if manifest["kind"] == "ConfigMap"
        for name, text in manifest["data"].items()
    }
    (tmp_path / "stentor.toml").write_text(files["stentor.toml"], "utf-8")
    assert load(tmp_path / "stentor.toml").path == Path("/data/pipeline")
    mistakes: list[str] = []
    top = TomlSection("", tomllib.loads(files["serve.toml"]), mistakes)
    served = read_serve(top, tmp_path)
    assert (mistakes, served.port) == ([], ServeSettings().port)


def test_the_image_installs_extras_and_runs_commands_that_there_are() -> None:
    text = (KUBERNETES / "Dockerfile").read_text("utf-8")
    extras = re.search(r"/source\[([\w,]+)\]", text)
    assert extras
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    image = f"stentor:{project['version']}"
    assert image in text
    for path, manifest in manifests():
        assert {one["image"] for one in containers(manifest)} <= {image}, path


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/pictures/*.svg")), ids=lambda one: one.stem)
def test_pictures_are_light_and_dark_and_ask_for_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "prefers-color-scheme: dark" in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "aria-label" in text


def test_pictures_are_what_their_programs_draw() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw_ideas.py"))
    for draw in drawn["DRAWINGS"]:
        kept = (ROOT / "docs" / "pictures" / f"{draw.__name__}.svg").read_text("utf-8")
        assert draw().write() == kept, draw.__name__
    afternoon = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw_afternoon.py"))
    kept = (ROOT / "docs" / "pictures" / "afternoon.svg").read_text("utf-8")
    assert afternoon["draw"]() == kept


def test_the_data_of_tutorials_is_small_and_what_its_program_draws() -> None:
    drawn = runpy.run_path(str(DATA / "draw.py"))["files"]()
    for name, text in drawn.items():
        assert (DATA / name).read_text("utf-8") == text, name
    named = (DATA / "SOURCES.txt").read_text("utf-8")
    kept = [path for path in DATA.iterdir() if path.suffix in (".csv", ".geojson", ".jsonl")]
    assert [path.name for path in kept if path.name not in named] == []
    assert sum(path.stat().st_size for path in kept) < 1_000_000


def test_the_workflow_runs_targets_and_tests_that_there_are() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)", " ".join(commands)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [lowest] = [one for one in commands if "lowest-direct" in one]
    extras = re.search(r"'\.\[([\w,]+)\]'", lowest)
    assert extras
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    pythons = workflow["jobs"]["newest"]["strategy"]["matrix"]["python"]
    supported = (ROOT / "docs" / "reference" / "versions.md").read_text("utf-8")
    assert f"| Python | 3.11 to {pythons[-1]} |" in supported
    paths = re.findall(r"(?:lab/)?tests/\w+|\.ci/\w+", " ".join(commands))
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert {hook["language"] for repo in hooks["repos"] for hook in repo["hooks"]} == {"system"}
