"""Experiments one after the other, each kept in a folder when it is done: a run can be resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stentor._files import replace
from stentor_lab.reproduce.curves import Panel, panel_of
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.registry import Chosen
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.result import this_machine


@dataclass(frozen=True)
class FigureResult:
    """What a figure gave, as it is kept."""

    paper: str
    number: str
    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    seconds: float
    panels: tuple[Panel, ...]
    claims: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return f"{self.paper}-{self.number}"

    @property
    def command(self) -> str:
        """What makes it again."""
        words = ["stentor-lab reproduce", self.paper, self.number, f"--{self.settings['scale']}"]
        if self.settings["scale"] == "full":
            words.pop()
        words.append(f"--seed {self.settings['seed']}")
        if self.settings["data"] != "drawn":
            words.append("--data FOLDER")
        return " ".join(words)

    def to_dict(self) -> dict[str, Any]:
        return {
            "paper": self.paper,
            "number": self.number,
            "command": self.command,
            "settings": dict(self.settings),
            "machine": dict(self.machine),
            "seconds": self.seconds,
            "claims": [dict(claim) for claim in self.claims],
            "panels": [panel.to_dict() for panel in self.panels],
        }


def result_of(raw: Mapping[str, Any], paper: Paper, experiment: Experiment) -> FigureResult:
    """The result that `to_dict` wrote; claims are judged anew, by the rules of today."""
    panels = tuple(map(panel_of, raw["panels"]))
    claims = tuple(experiment.judged(panels))
    facts = raw["settings"], raw["machine"], raw["seconds"]
    return FigureResult(paper.key, experiment.number, *facts, panels, claims)


def settings_of(settings: RunSettings) -> dict[str, Any]:
    """What a kept result must have been measured with to stand for a new one."""
    scale = settings.scale
    return {
        "scale": scale.name,
        "a million is": scale.base,
        "events": scale.events,
        "repetitions": scale.repetitions,
        "points": scale.points,
        "up to, million": scale.up_to,
        "seed": settings.seed,
        "data": "real" if settings.is_real else "drawn",
    }


class Folder:
    """Where a run is kept: `data/` has a file for each figure that is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data, self.figures = path / "data", path / "figures"

    def kept(self, paper: Paper, experiment: Experiment) -> FigureResult | None:
        """The result of *experiment*, if it is done."""
        path = self.data / f"{paper.key}-{experiment.number}.json"
        if not path.is_file():
            return None
        return result_of(json.loads(path.read_text("utf-8")), paper, experiment)

    def keep(self, result: FigureResult) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        text = json.dumps(result.to_dict(), indent=1, ensure_ascii=False)
        replace(self.data / f"{result.name}.json", text.encode())


def run(
    chosen: Iterable[Chosen], settings: RunSettings, folder: Folder, *, again: bool = False
) -> list[FigureResult]:
    """The results of *chosen*, measured now or kept from an earlier run with equal settings."""
    wanted, results = settings_of(settings), []
    todo: list[Chosen] = []
    for paper, experiment in chosen:
        kept = None if again else folder.kept(paper, experiment)
        if kept is None or dict(kept.settings) != wanted:
            todo.append((paper, experiment))
        else:
            results.append(kept)
    if results:
        settings.progress(f"{len(results)} figures are kept from before")
    started, done, total = time.monotonic(), 0.0, sum(one.weight for _, one in todo)
    for position, (paper, experiment) in enumerate(todo):
        left = ""
        if done:
            seconds = (time.monotonic() - started) / done * (total - done)
            left = f", about {_minutes(seconds)} left"
        told = f"[{position + 1} of {len(todo)}{left}]"
        settings.progress(f"{told} {paper.key} {experiment.number}: {experiment.title}")
        kept = None if again else folder.kept(paper, experiment)  # another run may share the folder
        if kept is not None and dict(kept.settings) == wanted:
            results.append(kept)
            done += experiment.weight
            continue
        result = measured(paper, experiment, settings)
        folder.keep(result)
        settings.progress(f"{paper.key} {experiment.number}: {result.seconds:.1f} s")
        results.append(result)
        done += experiment.weight
    order = {(paper.key, one.number): number for number, (paper, one) in enumerate(chosen)}
    return sorted(results, key=lambda one: order[one.paper, one.number])


def measured(paper: Paper, experiment: Experiment, settings: RunSettings) -> FigureResult:
    """The result of *experiment*, measured now."""
    assert experiment.measure is not None, "it can be run"
    start = time.perf_counter()
    panels = experiment.measure(settings)
    seconds = time.perf_counter() - start
    facts = settings_of(settings), this_machine(), seconds
    claims = tuple(experiment.judged(panels))
    return FigureResult(paper.key, experiment.number, *facts, panels, claims)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
