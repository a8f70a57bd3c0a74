"""Deliveries that are handed on: each batch at least once, none before it is committed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from stentor.errors import FolderError
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.sinks.kafka import Outbox
from stentor.pipeline.sources import Columns
from stentor.pipeline.sources.frames import Frame
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.stream.start import run
from stentor.pipeline.tables.delta import DeltaTables

COLUMNS = "id string, op string, expression string, price double, n long"


class Elsewhere:
    """A pipeline whose deliveries go to a list, which can be out of order for a while."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.files = folder / "in"
        self.files.mkdir()
        self.path = folder / "out"
        self.marker = self.path / "sent" / "list.batch"
        self.arrived: list[tuple[str, int]] = []
        self.is_out_of_order = False
        self.records = 0
        self.give(op="subscribe", id="ana", expression="price > 0")

    def give(self, **record: Any) -> None:
        """One more record, which becomes a batch."""
        text = json.dumps({"n": self.records, **record})
        file = self.files / f"{self.records}.jsonl"
        file.write_text(text)
        os.utime(file, (self.records, self.records))  # Spark takes the oldest first
        self.records += 1

    def publish(self, price: float = 1.0) -> None:
        self.give(op="publish", id=f"e{self.records}", price=price)

    def send(self, deliveries: DataFrame) -> None:
        if self.is_out_of_order:
            raise ConnectionError("nobody there")
        self.arrived += sorted((row.event, row.batch) for row in deliveries.collect())

    def run(self, *, sends: bool = True, **settings: Any) -> None:
        """Take in what is there, a record in each batch."""
        files = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        frame = Frame(files.json(str(self.files)), "records", "records", Columns(order="n"))
        outbox = Outbox(self.spark, self.path, "list", self.send)
        query = run(
            [frame],
            self.path,
            StreamSettings(has_order=True, **settings),
            trigger={"availableNow": True},
            listeners=[outbox] if sends else [],
            after_recovery=[outbox.send_waiting] if sends else [],
        )
        query.awaitTermination()

    @property
    def sent(self) -> int:
        return int(self.marker.read_text())


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> Elsewhere:
    return Elsewhere(spark, tmp_path)


def test_the_marker_also_follows_batches_without_deliveries(elsewhere: Elsewhere) -> None:
    elsewhere.publish()
    elsewhere.publish(-1.0)
    elsewhere.run()
    assert elsewhere.arrived == [("e1", 1)]
    assert elsewhere.sent == 2


def test_what_could_not_be_sent_is_sent_at_the_next_start_before_its_first_batch(
    elsewhere: Elsewhere,
) -> None:
    elsewhere.publish()
    elsewhere.is_out_of_order = True
    with pytest.raises(StreamingQueryException, match="nobody there"):
        elsewhere.run()
    last = Commits(elsewhere.path).last()
    assert last is not None
    assert (last.batch, elsewhere.sent) == (1, 0)
    with pytest.raises(ConnectionError):
        elsewhere.run()
    elsewhere.is_out_of_order = False
    elsewhere.publish()
    elsewhere.run()
    assert elsewhere.arrived == [("e1", 1), ("e2", 2)]


def test_no_batch_is_skipped_where_manifests_are_gone_and_tables_are_behind(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        elsewhere.publish()
    elsewhere.run(sends=False, keep_manifests=2)
    elsewhere.publish()
    with monkeypatch.context() as patched:  # as if killed between the commit and the tables
        patched.setattr(DeltaTables, "roll_forward", _fails_after_recovery())
        with pytest.raises(StreamingQueryException, match="killed"):
            elsewhere.run(sends=False, keep_manifests=2)
    assert len(list((elsewhere.path / "manifests").iterdir())) < 4
    elsewhere.run(keep_manifests=2)
    assert elsewhere.arrived == [(f"e{batch}", batch) for batch in range(1, 5)]
    assert elsewhere.sent == 4


def _fails_after_recovery() -> Any:
    whole = DeltaTables.roll_forward
    calls = iter([whole])

    def roll_forward(tables: DeltaTables, manifests: Any) -> None:
        try:
            next(calls)(tables, manifests)
        except StopIteration:
            raise OSError("killed") from None

    return roll_forward


def test_who_is_refused_the_folder_sends_nothing(elsewhere: Elsewhere) -> None:
    elsewhere.publish()
    elsewhere.run(sends=False)
    program = (
        "import pathlib, sys; from stentor.pipeline.storage.writers import lock_folder\n"
        "lock = lock_folder(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, elsewhere.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(FolderError, match="one writer"):
            elsewhere.run()
    assert elsewhere.arrived == []
    assert not elsewhere.marker.exists()
    elsewhere.run()
    assert elsewhere.arrived == [("e1", 1)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seven", "does not hold the number of a batch"),
        ("7", "says that batch 7 was sent, but the last one of .* is 1"),
    ],
)
def test_a_marker_that_cannot_be_right_is_refused(
    elsewhere: Elsewhere, text: str, sentence: str
) -> None:
    elsewhere.publish()
    elsewhere.run()
    elsewhere.marker.write_text(text)
    elsewhere.publish()
    with pytest.raises(FolderError, match=sentence):
        elsewhere.run()
    elsewhere.marker.write_text("1")
    elsewhere.run()
    assert elsewhere.arrived == [("e1", 1), ("e2", 2)]
