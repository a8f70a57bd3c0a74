"""The k best of an event among what several shards found best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from stentor.engine.ranking import best_places
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.commit.new_files import explaining
from stentor.pipeline.tables.files import write_file


class RankReport(msgspec.Struct, frozen=True):
    """The files of one chunk's deliveries."""

    files: list[TableFile]


@dataclass(frozen=True)
class Ranking:
    """What follows the matching step of a sharded plan: task number n ranks chunk n."""

    path: str
    work: str
    batch: int
    found: tuple[tuple[str, ...], ...]  # per chunk the files in which shards left their best
    top: int

    def task(self, number: int) -> RankReport:
        """Rank one chunk."""
        tables = [read_found(Path(self.work), name) for name in self.found[number]]
        if not tables:
            return RankReport([])
        best = k_best(pa.concat_tables(tables), self.top)
        return RankReport([write_file(Path(self.path), "deliveries", best, self.batch)])


def k_best(deliveries: Any, k: int) -> Any:
    """The k best rows of each event, best first; equal scores go by id."""
    seq, scores = deliveries["seq"].to_numpy(), deliveries["score"].to_numpy()
    return deliveries.take(pa.array(best_places(seq, scores, deliveries["subscription"], k)))


def write_found(work: Path, name: str, deliveries: Any) -> None:
    """Leave what one shard found best for the ranking."""
    with (
        explaining(work),
        pa.OSFile(str(work / name), "wb") as file,
        pa.ipc.new_file(file, deliveries.schema) as writer,
    ):
        writer.write_table(deliveries)


def read_found(work: Path, name: str) -> Any:
    """What `write_found` left."""
    with pa.memory_map(str(work / name)) as file:
        return pa.ipc.open_file(file).read_all()
