"""What is wrong with a stream's input or folder: a sentence that says what to do, tables intact."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stentor.errors import FolderError, SettingsError
from stentor.pipeline import build_snapshot, match, start, tables
from stentor.pipeline.spark.failures import failure
from tests.programs.small_disk import filled, small_disk

EVENTS = "id string, price double, brand string, n long"
AT_ONCE = {"availableNow": True}


class Pipeline:
    """A stream of events of one price, and of one subscription that wants them all."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.path = folder / "out"
        self.files = 0
        (folder / "events").mkdir(parents=True)
        (folder / "changes").mkdir()
        subscription = {"id": "ana", "expression": "price > 0", "n": 0}
        (folder / "changes" / "0.jsonl").write_text(json.dumps(subscription))

    def publish(self, *prices: Any) -> None:
        """Put a file of events with these prices where the stream finds it."""
        lines = (
            {"id": f"e{self.files}-{row}", "price": price, "n": self.files}
            for row, price in enumerate(prices)
        )
        text = "\n".join(map(json.dumps, lines))
        (self.folder / "events" / f"{self.files}.jsonl").write_text(text)
        self.files += 1

    def events(self, columns: str = EVENTS) -> DataFrame:
        return self.spark.readStream.schema(columns).json(str(self.folder / "events"))

    def changes(self) -> DataFrame:
        columns = "id string, expression string, n long"
        return self.spark.readStream.schema(columns).json(str(self.folder / "changes"))

    def start(self, events: DataFrame | None = None, **settings: Any) -> StreamingQuery:
        chosen = {"trigger": AT_ONCE, "order": "n", **settings}
        return start(events or self.events(), self.changes(), self.path, **chosen)

    def run(self, events: DataFrame | None = None, **settings: Any) -> None:
        """Take in what is there."""
        self.start(events, **settings).awaitTermination()

    @property
    def delivered(self) -> int:
        """How many deliveries the tables have, to different events all of them."""
        rows = tables.read(self.spark, self.path, "deliveries").collect()
        assert len({row.event for row in rows}) == len(rows)
        return len(rows)


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


@pytest.fixture
def begun(pipeline: Pipeline) -> Pipeline:
    """One that has taken in a batch of two events, and has three more to come."""
    pipeline.publish(1.0, 2.0)
    pipeline.run()
    assert pipeline.delivered == 2
    pipeline.publish(3.0, 4.0, 5.0)
    return pipeline


def goes_on(pipeline: Pipeline, **settings: Any) -> None:
    """The three events that were to come are delivered, and nothing else."""
    pipeline.run(**settings)
    assert pipeline.delivered == 5


# Columns.


def test_a_missing_column_is_named_before_anything_runs(pipeline: Pipeline) -> None:
    with pytest.raises(SettingsError, match=r"(?s)events.*'id'"):
        pipeline.run(pipeline.events("price double, n long"))
    with pytest.raises(SettingsError, match=r"(?s)events.*'n'"):
        pipeline.run(pipeline.events("id string, price double"))
    assert not list(pipeline.path.glob("manifests/*"))


def test_a_column_of_a_wrong_type_is_named_with_what_it_should_be(pipeline: Pipeline) -> None:
    with pytest.raises(
        SettingsError,
        match=r"events, column 'n': expected an integer or a timestamp, got string; cast",
    ):
        pipeline.run(pipeline.events("id string, price double, n string"))
    with pytest.raises(SettingsError, match=r"price"):
        pipeline.run(
            pipeline.events("id string, price map<string,long>, n long"),
            schema={"price": "number"},
        )


def test_a_frame_that_is_no_stream_is_refused(pipeline: Pipeline) -> None:
    still = pipeline.spark.createDataFrame([("e1", 1.0, 1)], "id string, price double, n long")
    with pytest.raises(SettingsError, match=r"events is no streaming DataFrame.*pipeline\.match"):
        pipeline.run(still)


@pytest.mark.parametrize("address", ["ftp://bucket/out", "file:/tmp/out", "dbfs:/out"])
def test_an_address_elsewhere_is_refused_wherever_a_folder_is_named(
    pipeline: Pipeline, address: str
) -> None:
    asked = pipeline.spark.createDataFrame([("ana", "price > 0")], "id string, expression string")
    events = pipeline.spark.createDataFrame([("e1", 1.0)], "id string, price double")
    told = "is an address of the scheme"
    with pytest.raises(SettingsError, match=f"checkpoint: .*{told}"):
        pipeline.run(checkpoint=address)
    with pytest.raises(SettingsError, match=f"path: .*{told}"):
        start(pipeline.events(), None, address)
    with pytest.raises(SettingsError, match=f"path: .*{told}"):
        build_snapshot(asked, address, schema=events)
    with pytest.raises(SettingsError, match=f"snapshot: .*{told}"):
        match(events, snapshot=address)
    with pytest.raises(SettingsError, match=f"scratch: .*{told}"):
        match(events, asked, scratch=address)
    with pytest.raises(SettingsError, match=f"path: .*{told}"):
        tables.read(pipeline.spark, address, "deliveries")
    assert not list(Path().glob("*:*"))


# Between restarts.


def test_a_column_that_is_added_later_is_left_out(begun: Pipeline) -> None:
    begun.run(begun.events(EVENTS + ", colour string"))
    assert begun.delivered == 5


def test_a_column_that_went_or_changed_its_type_is_named(begun: Pipeline) -> None:
    for price, sentence in (
        ("", "no source of events has a column 'price'"),
        ("price string, ", "column 'price': expected a number, as the schema says, got string"),
        ("price array<string>, ", "column 'price': expected a number, as the schema says"),
        (
            "price struct<low: double, high: double>, ",
            "'price' is struct<low:double,high:double> now, but was double when the pipeline began",
        ),
    ):
        with pytest.raises(SettingsError, match=sentence):
            begun.run(begun.events(f"id string, {price}brand string, n long"))
    goes_on(begun)


def test_a_parquet_file_of_other_types_stops_the_stream_with_advice(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = tmp_path / "in"
    files.mkdir()
    pq.write_table(pa.table({"id": ["e1"], "price": [1.0]}), files / "0.parquet")
    schema = spark.read.parquet(str(files)).schema
    for number, price in ((1, ["dear"]), (2, [2.0])):
        pq.write_table(pa.table({"id": [f"e{number}"], "price": price}), files / "1.parquet")
        events = spark.readStream.schema(schema).parquet(str(files))
        query = start(events, None, tmp_path / "out", trigger=AT_ONCE)
        if number == 1:
            with pytest.raises(StreamingQueryException) as caught:
                query.awaitTermination()
            assert "a new Parquet file has a column of another type" in str(failure(caught.value))
        else:
            query.awaitTermination()


def test_what_cannot_change_between_restarts_is_refused(begun: Pipeline) -> None:
    for changed, sentence in (
        ({"order": None}, "began with a pipeline that named a column for the order.*start it as"),
        ({"time": "n"}, "that did not name a column for the time, and this cannot change"),
        ({"schema": {"price": "string"}}, "began with the schema .* only new attributes"),
    ):
        with pytest.raises(SettingsError, match=f"(?s){sentence}"):
            begun.run(**changed)
    goes_on(begun)


def test_index_and_plan_may_change_between_restarts(begun: Pipeline) -> None:
    goes_on(begun, index="scan", plan="sharded", shards=3, top=1)
    begun.publish(1.0)
    begun.run(plan="replicated")
    assert begun.delivered == 6


# Checkpoints, and other writers.


def test_a_fresh_checkpoint_on_an_old_folder_is_refused(begun: Pipeline, tmp_path: Path) -> None:
    with pytest.raises(StreamingQueryException) as caught:
        begun.run(checkpoint=tmp_path / "another")
    assert "belongs to another checkpoint" in str(caught.value)
    assert "start with the checkpoint that it was written with" in str(caught.value)
    goes_on(begun)


def test_the_checkpoint_of_another_pipeline_is_refused(begun: Pipeline, tmp_path: Path) -> None:
    shutil.copytree(begun.path / "checkpoint", tmp_path / "copied")
    begun.run()
    begun.path = tmp_path / "new"
    begun.publish(1.0)
    with pytest.raises(StreamingQueryException) as caught:
        begun.run(checkpoint=tmp_path / "copied")
    assert "Spark's checkpoint is at batch 1" in str(caught.value)
    assert "restore both from the same time, or start afresh in another folder" in str(caught.value)
    assert begun.delivered == 0


def test_a_second_query_on_one_folder_is_refused_until_the_first_has_stopped(
    begun: Pipeline,
) -> None:
    first = begun.start(trigger={"processingTime": "1 hour"})
    try:
        with pytest.raises(FolderError, match=r"written by process .* stop that one first"):
            begun.start()
    finally:
        first.stop()
    goes_on(begun)


def test_a_folder_that_another_process_writes_is_refused(begun: Pipeline) -> None:
    program = (
        "import pathlib, sys; from stentor.pipeline.storage.writers import lock_folder\n"
        "lock = lock_folder(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, begun.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(FolderError, match=f"process {other.pid} on .* one writer"):
            begun.start()
    goes_on(begun)


# What stands in the folder.


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def of_another_program(file: Path) -> None:
    file.write_text('{"format": "something else"}')


def of_a_newer_release(file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 99}))


SPOILT = [
    (cut_short, "is damaged|is another program's"),
    (of_another_program, "is another program's; check the path"),
    (of_a_newer_release, "version 99.*upgrade Stentor"),
]


def test_a_spoilt_manifest_is_named(begun: Pipeline) -> None:
    file = begun.path / "manifests" / f"{0:020}.json"
    whole = file.read_bytes()
    for spoil, sentence in SPOILT:
        spoil(file)
        with pytest.raises(FolderError, match=f"(?s){file.name}.*({sentence})"):
            begun.start()
        file.write_bytes(whole)
    goes_on(begun)


def test_a_spoilt_snapshot_is_named(spark: SparkSession, tmp_path: Path) -> None:
    asked = spark.createDataFrame([("ana", "price > 0")], "id string, expression string")
    events = spark.createDataFrame([("e1", 1.0)], "id string, price double")
    path = tmp_path / "snapshot"
    build_snapshot(asked, path, schema=events)
    whole = (path / "manifest.json").read_bytes()
    for spoil, sentence in SPOILT:
        spoil(path / "manifest.json")
        with pytest.raises(FolderError, match=f"(?s){path}.*({sentence})"):
            match(events, snapshot=path)
        (path / "manifest.json").write_bytes(whole)
    assert match(events, snapshot=path).count() == 1


def test_a_segment_that_is_lost_is_named(begun: Pipeline) -> None:
    (segment,) = (begun.path / "segments").iterdir()
    aside = segment.rename(begun.folder / "aside")
    with pytest.raises(PythonException) as caught:
        begun.start(plan="sharded", shards=2)  # files all of them anew
    assert segment.name in str(failure(caught.value))
    aside.rename(segment)
    goes_on(begun)


# While it runs.


def test_a_stream_of_too_many_bad_records_stops_after_its_commit_and_can_go_on(
    pipeline: Pipeline,
) -> None:
    pipeline.publish(*[1.0] * 90)
    lines = "\n".join(json.dumps({"price": 1.0, "n": 1}) for _ in range(20))
    (pipeline.folder / "events" / "bad.jsonl").write_text(lines)
    with pytest.raises(StreamingQueryException) as caught:
        pipeline.run(most_rejected=0.1)
    assert "20 of 111 records since the start were rejected (18.0%)" in str(caught.value)
    assert "more than the limit of 10.0%; the table 'rejected' says why" in str(
        failure(caught.value)
    )
    assert pipeline.delivered == 90
    assert tables.read(pipeline.spark, pipeline.path, "rejected").count() == 20
    pipeline.files = 5
    pipeline.publish(1.0)
    pipeline.run()
    assert pipeline.delivered == 91


@pytest.mark.parametrize("left", [0, 150_000])
def test_a_full_disk_says_so_and_the_stream_goes_on_once_there_is_room(
    spark: SparkSession, tmp_path: Path, left: int
) -> None:
    with small_disk(tmp_path / "disk", 8) as disk:
        pipeline = Pipeline(spark, tmp_path / "pipeline")
        pipeline.path = disk / "out"
        pipeline.publish(1.0, 2.0)
        pipeline.run(checkpoint=tmp_path / "checkpoint")
        pipeline.publish(*[3.0] * 3000)
        with filled(disk, left=left), pytest.raises(StreamingQueryException) as caught:
            pipeline.run(checkpoint=tmp_path / "checkpoint")
        assert "No space left on device; free some space and start again" in str(caught.value)
        assert pipeline.delivered == 2
        pipeline.run(checkpoint=tmp_path / "checkpoint")
        assert pipeline.delivered == 3002
