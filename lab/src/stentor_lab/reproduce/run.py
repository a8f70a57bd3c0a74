"""Experiments one after the other, each kept in a folder when it is done: a run can be resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from stentor._files import replace
from stentor_lab.reproduce import registry
from stentor_lab.reproduce.curves import Panel, panel_of
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.registry import Chosen
from stentor_lab.reproduce.scale import SCALES, RunSettings
from stentor_lab.result import this_machine
from stentor_lab.workloads.real_files import contents


def sizes_of(settings: Mapping[str, Any]) -> list[str]:
    """The words of a command that asks for *settings*."""
    scale = SCALES[settings["scale"]]
    million, up_to = settings["a million is"], settings["up to, million"]
    words = [f"--{scale.name}"] if scale.name != "full" else []
    words += [f"--million {million}"] if million != scale.base else []
    words += [f"--up-to {up_to:g}"] if up_to != scale.up_to else []
    words.append(f"--seed {settings['seed']}")
    return [*words, "--data FOLDER"] if settings["data"] else words


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
        return " ".join(
            ("stentor-lab reproduce", self.paper, self.number, *sizes_of(self.settings))
        )

    @property
    def data(self) -> str:
        """What was read or drawn, panel by panel."""
        every = (str(panel.facts.get("data", "drawn")) for panel in self.panels)
        return "; ".join(dict.fromkeys(every))

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
        "data": contents(),
    }


def is_still_good(kept: FigureResult | None, wanted: Mapping[str, Any]) -> bool:
    """Whether *kept* stands for a run with the settings *wanted*, here and now."""
    return (
        kept is not None
        and dict(kept.settings) == dict(wanted)
        and dict(kept.machine) == this_machine()
    )


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
    chosen: Iterable[Chosen],
    settings: RunSettings,
    folder: Folder,
    *,
    again: bool = False,
    processes: int = 1,
) -> list[FigureResult]:
    """The results of *chosen*, measured now or kept from an earlier run with equal settings.

    With several *processes* so many figures are measured at a time, the longest first.
    """
    wanted, chosen = settings_of(settings), list(chosen)
    results, todo = [], []
    for paper, experiment in chosen:
        kept = None if again else folder.kept(paper, experiment)
        if kept is not None and is_still_good(kept, wanted):
            results.append(kept)
        else:
            todo.append((paper, experiment))
    if results:
        settings.progress(f"{len(results)} figures are kept from before")
    started, total = time.monotonic(), sum(one.weight for _, one in todo)
    done, measuring = 0.0, _one_by_one if processes == 1 else partial(_several, processes)
    for position, (paper, experiment, result) in enumerate(measuring(todo, settings)):
        folder.keep(result)
        results.append(result)
        done += experiment.weight
        left = _minutes((time.monotonic() - started) / done * (total - done))
        told = f"[{position + 1} of {len(todo)}, about {left} left] {paper.key}"
        settings.progress(f"{told} {experiment.number}: {result.seconds:.1f} s of the processor")
    order = {(paper.key, one.number): number for number, (paper, one) in enumerate(chosen)}
    return sorted(results, key=lambda one: order[one.paper, one.number])


Measured = Iterator[tuple[Paper, Experiment, FigureResult]]


def _one_by_one(todo: Sequence[Chosen], settings: RunSettings) -> Measured:
    for paper, experiment in todo:
        settings.progress(f"{paper.key} {experiment.number}: {experiment.title}")
        yield paper, experiment, measured(paper, experiment, settings)


def _several(processes: int, todo: Sequence[Chosen], settings: RunSettings) -> Measured:
    """Each figure in a process, some at a time; a process has all it needs by name."""
    quiet = replace_fields(settings, progress=_quietly)
    ordered = sorted(todo, key=lambda one: -one[1].weight)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        at_work = {
            pool.submit(_measured_by_name, paper.key, one.number, quiet): (paper, one)
            for paper, one in ordered
        }
        for finished in as_completed(at_work):
            paper, experiment = at_work[finished]
            yield paper, experiment, result_of(finished.result(), paper, experiment)


def _quietly(_: str) -> None:
    """Tell nobody."""


def _measured_by_name(paper: str, number: str, settings: RunSettings) -> dict[str, Any]:
    ((whole, experiment),) = registry.chosen(paper, number)
    return measured(whole, experiment, settings).to_dict()


def measured(paper: Paper, experiment: Experiment, settings: RunSettings) -> FigureResult:
    """The result of *experiment*, measured now; its seconds are those of the processor."""
    assert experiment.measure is not None, "it can be run"
    start = time.process_time()
    panels = experiment.measure(settings)
    seconds = time.process_time() - start
    facts = settings_of(settings), this_machine(), seconds
    claims = tuple(experiment.judged(panels))
    return FigureResult(paper.key, experiment.number, *facts, panels, claims)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
