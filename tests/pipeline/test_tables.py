"""The Delta tables: rolled forward once, whatever crashed; compacted, tidied, read by anything."""

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("pandas")

import duckdb
from deltalake import DeltaTable

from stentor.errors import FolderError
from stentor.pipeline.commit.failpoints import FAILPOINTS
from stentor.pipeline.commit.housekeeping import remove_orphans, remove_unused
from stentor.pipeline.commit.manifests import Commits, LiveSegment, Segment, TableFile
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.files import (
    PARTITIONED,
    TABLES,
    TIME,
    table_folder,
    table_schemas,
    write_file,
    write_files,
)
from tests.programs import commit_batches
from tests.programs.commit_batches import (
    BATCHES,
    OLD_SCHEMAS,
    SCHEMAS,
    new_manifest,
    rows,
    write_batch,
)
from tests.programs.killed_runs import killed_runs

# Those before belong to the batch itself.
OWN_FAILPOINTS = FAILPOINTS[FAILPOINTS.index("table-created") :]
KILLS = [
    *((point,) for point in OWN_FAILPOINTS),
    *((f"delta-committed:{table}",) for table in (2, 3)),
    ("manifest-linked:3", "delta-linked", "delta-committed"),
    ("manifest-written:2", "unused-removed", "unused-removed:2"),
]


class Pipeline(SimpleNamespace):
    """A folder with its commits and tables, and what a batch loop does with them."""

    path: Path
    commits: Commits
    tables: DeltaTables

    def batch(self, batch: int, *, rolled: bool = True) -> None:
        manifest = new_manifest(batch, files=write_batch(self.path, batch))
        self.commits.commit(manifest)
        if rolled:
            self.tables.roll_forward([manifest])


def pipeline(path: Path, retention: timedelta = timedelta(hours=1)) -> Pipeline:
    tables = DeltaTables(path, SCHEMAS, retention=retention)
    return Pipeline(path=path, commits=Commits(path), tables=tables)


def content(path: Path) -> dict[str, list[dict[str, object]]]:
    """All rows of all tables, as a reader finds them."""
    return {
        table: sorted(
            DeltaTable(str(table_folder(path, table).local)).to_pyarrow_table().to_pylist(),
            key=lambda row: (row["batch"], row["time"]),
        )
        for table in TABLES
    }


def on_disk(path: Path) -> set[str]:
    return {file.name for file in path.glob("tables/*/*.parquet")}


def in_tables(path: Path) -> set[str]:
    """The names of the files that the tables consist of now."""
    return {
        Path(file).name
        for table in TABLES
        for file in DeltaTable(str(table_folder(path, table).local)).file_uris()
    }


@pytest.fixture(scope="module")
def uncrashed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    path = tmp_path_factory.mktemp("uncrashed")
    commit_batches.run(path)
    return content(path)


@pytest.fixture(scope="module")
def crashed(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, ...], tuple[Path, list[bool]]]:
    """For each of KILLS the folder, and which of the runs in it were killed."""
    folders = [tmp_path_factory.mktemp("crashed") for _ in KILLS]
    killed = killed_runs("tests.programs.commit_batches", zip(folders, KILLS, strict=True))
    return dict(zip(KILLS, zip(folders, killed, strict=True), strict=True))


@pytest.mark.parametrize("kills", KILLS, ids="+".join)
def test_killed_and_started_again_the_tables_are_those_of_a_run_that_never_stopped(
    kills: tuple[str, ...],
    crashed: dict[tuple[str, ...], tuple[Path, list[bool]]],
    uncrashed: dict[str, list[dict[str, object]]],
) -> None:
    path, killed = crashed[kills]
    assert killed == [True] * len(kills) + [False]
    assert content(path) == uncrashed
    restarted = pipeline(path, timedelta(0))
    restarted.tables.roll_forward(restarted.commits.since(-1))
    remove_orphans(path, restarted.commits, restarted.tables)
    last = restarted.commits.last()
    assert last is not None
    assert last.batch == BATCHES - 1
    assert content(path) == uncrashed
    assert on_disk(path) == in_tables(path)
    assert [folder.name for folder in path.glob("segments/*")] == [last.segments[0].name]
    assert not [*path.rglob("*.partial"), *path.rglob("*#*")]


def test_all_four_tables_exist_and_are_empty_before_the_first_batch(tmp_path: Path) -> None:
    pipeline(tmp_path)
    assert content(tmp_path) == {table: [] for table in TABLES}


def test_rows_come_back_as_they_were_written_with_their_batch(tmp_path: Path) -> None:
    pipeline(tmp_path).batch(7)
    for table in TABLES:
        written = pa.concat_tables([rows(table, 140, 10), rows(table, 150, 10)])
        written = written.append_column("batch", pa.array([7] * 20))
        found = DeltaTable(str(table_folder(tmp_path, table).local)).to_pyarrow_table()
        assert found.sort_by("time").to_pylist() == written.to_pylist()


def test_dictionary_encoded_text_is_plain_text_in_the_file(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    plain = rows("deliveries", 0, 10)
    encoded = plain.set_column(0, "event", plain["event"].dictionary_encode())
    file = write_file(tmp_path, "deliveries", encoded, 0)
    stored = pq.read_table(table_folder(tmp_path, "deliveries").local / file.name)
    assert stored.schema.equals(SCHEMAS["deliveries"])
    opened.tables.roll_forward([new_manifest(0, files={"deliveries": [file]})])
    assert [row["event"] for row in content(tmp_path)["deliveries"]] == plain["event"].to_pylist()


def test_rolling_forward_again_and_in_any_portions_changes_nothing(tmp_path: Path) -> None:
    portions, whole = pipeline(tmp_path / "portions"), pipeline(tmp_path / "whole")
    for batch in range(4):
        portions.batch(batch)
        portions.tables.roll_forward(portions.commits.since(-1))
        whole.batch(batch, rolled=False)
    reopened = pipeline(tmp_path / "portions")
    reopened.tables.roll_forward(reopened.commits.since(-1))
    whole.tables.roll_forward(whole.commits.since(-1))
    assert content(portions.path) == content(whole.path)
    assert len(content(whole.path)["deliveries"]) == 80


def test_a_program_that_compacts_a_table_between_two_batches_is_no_obstacle(
    tmp_path: Path,
) -> None:
    opened = pipeline(tmp_path)
    opened.batch(0)
    opened.batch(1)
    before = content(tmp_path)
    for table in TABLES:
        DeltaTable(str(table_folder(tmp_path, table).local)).optimize.compact()
    assert content(tmp_path) == before
    opened.batch(2)
    opened.tables.compact(limit=1)
    assert [row["batch"] for row in content(tmp_path)["events"]] == [0] * 20 + [1] * 20 + [2] * 20


def test_a_table_that_another_program_compacted_meanwhile_is_not_compacted_over_it(
    tmp_path: Path,
) -> None:
    opened = pipeline(tmp_path)
    opened.batch(0)
    log = opened.tables._logs["deliveries"]
    old = log.files
    DeltaTable(str(log.folder)).optimize.compact()
    log.replace(old, TableFile("merged-lost-the-race.parquet", 20, 1))
    assert len(content(tmp_path)["deliveries"]) == 20


def test_what_another_program_sets_on_a_table_stays_and_is_no_obstacle(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    opened.batch(0)
    events = DeltaTable(str(table_folder(tmp_path, "events").local))
    events.alter.set_table_properties({"delta.checkpointInterval": "50"})
    opened.tables.compact(limit=1)
    assert len(in_tables(tmp_path)) == 3  # one for each table but `rejected`
    version = events.version() + 1
    pipeline(tmp_path)
    events.update_incremental()
    assert events.version() == version
    assert events.metadata().configuration["delta.checkpointInterval"] == "50"


def test_compaction_keeps_every_row_and_few_files(tmp_path: Path) -> None:
    opened = pipeline(tmp_path, timedelta(0))
    for batch in range(12):
        opened.batch(batch)
    before = content(tmp_path)
    opened.tables.compact(limit=12)
    assert content(tmp_path) == before
    files = [DeltaTable(str(table_folder(tmp_path, table).local)).file_uris() for table in TABLES]
    assert [len(names) for names in files] == [1, 12, 1, 1]  # `rejected` has not more than 12
    assert on_disk(tmp_path) == in_tables(tmp_path)
    assert content(pipeline(tmp_path).path) == before


def test_large_files_are_left_alone(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    for batch in range(3):
        files = [write_file(tmp_path, "deliveries", rows("deliveries", 0, 40_000), batch)]
        opened.tables.roll_forward([new_manifest(batch, files={"deliveries": files})])
    assert files[0].bytes > 1 << 18
    opened.batch(3)
    opened.tables.compact(limit=1)
    sizes = sorted(file.rows for file in opened.tables._logs["deliveries"].files)
    assert sizes == [20, 120_000]


def test_readers_find_whole_batches_at_any_moment(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    over = threading.Event()
    seen: list[int] = []

    def look() -> None:
        while not over.is_set():
            seen.append(
                len(DeltaTable(str(table_folder(tmp_path, "events").local)).to_pyarrow_table())
            )

    reader = threading.Thread(target=look)
    reader.start()
    for batch in range(25):
        opened.batch(batch)
        opened.tables.compact(limit=6, checkpoint_every=10)
        opened.commits.prune(2, through=batch)
    over.set()
    reader.join()
    assert len(set(seen)) > 3
    assert seen == sorted(seen)
    assert all(count % 20 == 0 for count in seen)


def test_compaction_beside_the_batches_loses_nothing(tmp_path: Path) -> None:
    opened = pipeline(tmp_path, timedelta(0))
    over = threading.Event()

    def keep_up() -> None:
        while not over.is_set():
            opened.tables.compact(limit=2, checkpoint_every=5)

    upkeep = threading.Thread(target=keep_up)
    upkeep.start()
    for batch in range(15):
        opened.batch(batch)
    over.set()
    upkeep.join()
    found = content(pipeline(tmp_path).path)["subscriptions"]
    assert [row["batch"] for row in found] == [batch for batch in range(15) for _ in range(20)]


def test_pandas_and_duckdb_read_the_tables_in_one_line(tmp_path: Path) -> None:
    opened = pipeline(tmp_path / "a folder")
    for batch in range(3):
        opened.batch(batch)
    frame = DeltaTable(f"{tmp_path}/a folder/tables/deliveries").to_pandas()
    assert len(frame) == 60
    events = DeltaTable(f"{tmp_path}/a folder/tables/events").to_pyarrow_dataset()
    found = duckdb.sql("SELECT batch, sum(attributes.price) FROM events GROUP BY ALL ORDER BY ALL")
    assert found.fetchall() == [(n, sum(range(20 * n, 20 * n + 20))) for n in range(3)]
    del events


def test_a_checkpoint_shortens_the_log_and_changes_nothing(tmp_path: Path) -> None:
    opened = pipeline(tmp_path, timedelta(0))
    for batch in range(8):
        opened.batch(batch)
        opened.tables.compact(checkpoint_every=4)
    log = table_folder(tmp_path, "deliveries").local / "_delta_log"
    assert len([*log.glob("*.checkpoint.parquet")]) >= 1
    assert len([*log.glob("*.json")]) < 8
    reopened = pipeline(tmp_path)
    reopened.tables.roll_forward(reopened.commits.since(-1))
    assert len(content(tmp_path)["deliveries"]) == 160


def test_a_file_that_only_a_manifest_names_is_no_orphan(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    opened.batch(0)
    opened.batch(1, rolled=False)
    named = on_disk(tmp_path)
    write_file(tmp_path, "deliveries", rows("deliveries", 0, 1), 1)  # of a task that failed
    write_file(tmp_path, "deliveries", rows("deliveries", 0, 1), 2)
    assert len(on_disk(tmp_path)) == len(named) + 2
    remove_orphans(tmp_path, opened.commits, opened.tables)
    assert on_disk(tmp_path) == named
    opened.tables.roll_forward(opened.commits.since(-1))
    assert len(content(tmp_path)["deliveries"]) == 40


def test_files_of_the_batch_in_progress_stay_while_the_pipeline_runs(tmp_path: Path) -> None:
    opened = pipeline(tmp_path, timedelta(0))
    opened.batch(0)
    failed = write_file(tmp_path, "events", rows("events", 0, 1), 0)
    in_progress = write_file(tmp_path, "events", rows("events", 0, 1), 1)
    opened.tables.compact()
    assert in_progress.name in on_disk(tmp_path)
    assert failed.name not in on_disk(tmp_path)


def test_merged_files_stay_for_the_readers_of_older_versions(tmp_path: Path) -> None:
    opened = pipeline(tmp_path, timedelta(hours=1))
    opened.batch(0)
    reader = DeltaTable(str(table_folder(tmp_path, "events").local))
    opened.tables.compact(limit=1)
    opened.tables.compact(limit=1)
    remove_orphans(tmp_path, opened.commits, opened.tables)
    assert len(reader.to_pyarrow_table()) == 20
    retired = pipeline(tmp_path, timedelta(0))
    remove_orphans(tmp_path, retired.commits, retired.tables)
    assert on_disk(tmp_path) == in_tables(tmp_path)


def test_folders_that_the_last_manifest_does_not_name_go(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    names = ("bases/b1", "bases/b2", "segments/s1", "segments/s2", "live/l1", "live/l2")
    being_built = "bases/.b3.0123456789abcdef.partial"
    for name in (*names, being_built, "work/0-x", "checkpoint/offsets"):
        (tmp_path / name / "inner").mkdir(parents=True)
    manifest = new_manifest(
        0,
        bases=["b1"],
        segments=[Segment("s1", 0, 0, 1, 1)],
        live=[LiveSegment("l1", 1, 1)],
    )
    opened.commits.commit(manifest)
    remove_unused(tmp_path, manifest)
    kept = [name for name in names if (tmp_path / name).exists()]
    assert kept == ["bases/b1", "segments/s1", "live/l1"]
    assert (tmp_path / being_built).exists()
    assert (tmp_path / "work/0-x").exists()
    remove_orphans(tmp_path, opened.commits, opened.tables)
    assert [name for name in names if (tmp_path / name).exists()] == [
        "bases/b1",
        "segments/s1",
        "live/l1",
    ]
    assert not [*(tmp_path / "work").iterdir()]
    assert [folder.name for folder in (tmp_path / "bases").iterdir()] == ["b1"]
    assert (tmp_path / "checkpoint/offsets").exists()


def test_events_without_attributes_have_a_table_too(tmp_path: Path) -> None:
    DeltaTables(tmp_path, table_schemas(pa.struct([])))
    events = DeltaTable(str(table_folder(tmp_path, "events").local)).to_pyarrow_table()
    assert events.column_names == ["id", "until", "seq", "time", "batch", "order"]


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    pipeline(tmp_path)
    other = table_schemas(pa.struct([("price", pa.string())]))
    with pytest.raises(FolderError, match=r"tables/events has other columns: .*choose another"):
        DeltaTables(tmp_path, other)


def test_a_table_with_features_that_stentor_does_not_write_is_refused(tmp_path: Path) -> None:
    from deltalake import TableFeatures

    pipeline(tmp_path)
    table = DeltaTable(str(table_folder(tmp_path, "events").local))
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(FolderError, match=r"deletionVectors.*drop them"):
        pipeline(tmp_path)


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    pipeline(tmp_path)
    entry = table_folder(tmp_path, "events").local / "_delta_log" / f"{0:020d}.json"
    entry.write_text(entry.read_text()[:100])
    with pytest.raises(FolderError, match=r"tables/events cannot be used .*backup"):
        pipeline(tmp_path)


@pytest.mark.parametrize("name", ["100%25", "a[1]", "back\\slash"])
def test_a_path_that_deltalake_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FolderError, match="choose a path without"):
        pipeline(tmp_path / name)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NOT TESTED: a full disk, because {command} failed: {error}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_a_clear_error_and_the_tables_are_intact(small_disk: Path) -> None:
    opened = pipeline(small_disk / "pipeline")
    opened.batch(0)
    before = content(opened.path)
    with pytest.raises(FolderError, match="No space left on device; free some space"):
        write_file(opened.path, "deliveries", rows("deliveries", 0, 400_000), 1)
    assert on_disk(opened.path) == in_tables(opened.path)  # what it wrote of the file is gone
    opened.batch(1, rolled=False)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 512):
            pass
    with pytest.raises(FolderError, match="No space left on device; free some space"):
        opened.commits.commit(new_manifest(2))
    with pytest.raises(FolderError, match="No space left on device; free some space"):
        opened.tables.roll_forward(opened.commits.since(-1))
    with pytest.raises(FolderError, match="No space left on device; free some space"):
        opened.tables.compact(checkpoint_every=1)
    with pytest.raises(FolderError, match="No space left on device; free some space"):
        pipeline(small_disk / "second")
    assert content(opened.path) == before
    filler.unlink()
    opened.tables.roll_forward(opened.commits.since(-1))
    assert len(content(opened.path)["deliveries"]) == 40


# What the log says of files, partitions, rows that go.


def logged(path: Path, table: str) -> list[dict[str, object]]:
    """What the log says of the files that *table* consists of."""
    actions = DeltaTable(str(table_folder(path, table).local)).get_add_actions(flatten=True)
    return pa.table(actions).to_pylist()


def test_the_log_says_what_values_a_file_has(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    opened.batch(0)
    opened.batch(1)
    found = sorted(logged(tmp_path, "deliveries"), key=lambda one: one["min.seq"])
    spans = [(one["num_records"], one["min.seq"], one["max.seq"]) for one in found]
    assert spans == [(10, 0, 9), (10, 10, 19), (10, 20, 29), (10, 30, 39)]
    assert [one["max.batch"] for one in found] == [0, 0, 1, 1]
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=39)
    assert found[-1]["max.time"] == moment
    assert [one["null_count.order"] for one in found] == [0] * 4


def test_merged_files_have_the_values_of_all(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    opened.batch(0)
    opened.batch(1)
    opened.tables.compact(limit=1)
    (one,) = logged(tmp_path, "deliveries")
    assert (one["num_records"], one["min.seq"], one["max.seq"]) == (40, 0, 39)
    assert (one["min.batch"], one["max.batch"], one["null_count.seq"]) == (0, 1, 0)


@pytest.mark.parametrize("compacted", [False, True])
def test_a_value_is_left_out_where_it_is_unknown_in_a_part(tmp_path: Path, compacted: bool) -> None:
    opened = pipeline(tmp_path)
    every = rows("deliveries", 0, 3)
    long = every.set_column(0, "event", pa.array(["a", "z" * 200, "c"]))
    nothing = every.set_column(every.column_names.index("order"), "order", pa.nulls(3, pa.int64()))
    files = [write_file(tmp_path, "deliveries", one, 0) for one in (every, long, nothing)]
    opened.tables.roll_forward([new_manifest(0, files={"deliveries": files})])
    if compacted:
        opened.tables.compact(limit=1)
        (one,) = logged(tmp_path, "deliveries")
        assert one.get("max.event") is None
        assert (one["min.order"], one["max.order"], one["null_count.order"]) == (0, 2, 3)
    else:
        found = {one["path"]: one for one in logged(tmp_path, "deliveries")}
        known, too_long, none = (found[file.name] for file in files)
        assert (known["max.event"], too_long["max.event"]) == ("2", None)
        assert (none["max.order"], none["null_count.order"]) == (None, 3)


def test_readers_pass_over_files_that_cannot_hold_what_is_asked_for(tmp_path: Path) -> None:
    opened = pipeline(tmp_path)
    for batch in range(4):
        opened.batch(batch)
    dataset = DeltaTable(str(table_folder(tmp_path, "deliveries").local)).to_pyarrow_dataset()
    wanted = list(dataset.get_fragments(filter=ds.field("seq") == 35))
    assert len(list(dataset.get_fragments())) == 8
    assert len(wanted) == 1


DATED = table_schemas(pa.struct([("price", pa.float64())]), has_dates=True)
DAY = 86_400_000_000


def dated_rows(*days: int | None) -> pa.Table:
    """A delivery on each of *days* since 1970, at noon."""
    table = rows("deliveries", 0, len(days))
    times = pa.array([None if day is None else day * DAY + DAY // 2 for day in days], pa.int64())
    return table.set_column(5, "time", times.cast(TIME))


def test_a_partitioned_table_has_a_partition_for_each_day(tmp_path: Path) -> None:
    tables = DeltaTables(tmp_path, DATED)
    files = write_files(tmp_path, "deliveries", dated_rows(0, 1, None, 1), 0)
    assert sorted((one.rows, one.partition["date"] or "") for one in files) == [
        (1, ""),
        (1, "1970-01-01"),
        (2, "1970-01-02"),
    ]
    tables.roll_forward([new_manifest(0, files={"deliveries": files})])
    table = DeltaTable(str(table_folder(tmp_path, "deliveries").local))
    assert table.metadata().partition_columns == ["date"]
    found = table.to_pyarrow_table(filters=ds.field("date") == date(1970, 1, 2))
    assert found["event"].to_pylist() == ["1", "3"]
    assert {str(one) for one in found["date"].to_pylist()} == {"1970-01-02"}
    assert table.to_pyarrow_table().num_rows == 4


def test_files_are_merged_within_a_partition_and_after_a_restart_too(tmp_path: Path) -> None:
    tables = DeltaTables(tmp_path, DATED, retention=timedelta(0))
    for batch in range(3):
        files = write_files(tmp_path, "deliveries", dated_rows(0, 1, None), batch)
        tables.roll_forward([new_manifest(batch, files={"deliveries": files})])
    tables = DeltaTables(tmp_path, DATED, retention=timedelta(0))
    tables.roll_forward([new_manifest(2)])
    tables.compact(limit=1)
    found = logged(tmp_path, "deliveries")
    assert sorted((str(one["partition.date"]), one["num_records"]) for one in found) == [
        ("1970-01-01", 3),
        ("1970-01-02", 3),
        ("None", 3),
    ]
    stand = {
        file.relative_to(table_folder(tmp_path, "deliveries").local).as_posix()
        for file in tmp_path.glob("tables/deliveries/**/*.parquet")
    }
    assert stand == {one["path"] for one in found}
    assert (table_folder(tmp_path, "deliveries").local / PARTITIONED).exists()


def test_partitions_cannot_come_or_go(tmp_path: Path) -> None:
    DeltaTables(tmp_path / "plain", SCHEMAS)
    with pytest.raises(FolderError, match=r"has other columns|is partitioned by"):
        DeltaTables(tmp_path / "plain", DATED)
    DeltaTables(tmp_path / "dated", DATED)
    with pytest.raises(FolderError, match=r"has other columns|is partitioned by"):
        DeltaTables(tmp_path / "dated", SCHEMAS)


@pytest.mark.parametrize("schemas", [SCHEMAS, DATED])
def test_rows_go_once_all_of_their_file_are_older_than_they_are_kept(
    tmp_path: Path, schemas: dict[str, pa.Schema]
) -> None:
    keep = {"deliveries": timedelta(days=3)}
    tables = DeltaTables(tmp_path, schemas, retention=timedelta(0), keep=keep)
    for batch, days in enumerate([(0, 1), (1, 2), (3,), (5,)]):
        files = write_files(tmp_path, "deliveries", dated_rows(*days), batch)
        time = days[-1] * DAY + DAY // 2
        tables.roll_forward([new_manifest(batch, files={"deliveries": files}, time=time)])
        if batch == 2:
            tables = DeltaTables(tmp_path, schemas, retention=timedelta(0), keep=keep)
    tables.compact()
    read = DeltaTable(str(table_folder(tmp_path, "deliveries").local)).to_pyarrow_table()
    days = sorted({moment.day - 1 for moment in read["time"].to_pylist()})
    # Day 2 is the last that stays; day 1 where it shares a file with it.
    assert days == ([2, 3, 5] if schemas is DATED else [1, 2, 3, 5])
    names = {one["path"] for one in logged(tmp_path, "deliveries")}
    folder = table_folder(tmp_path, "deliveries").local
    assert {file.relative_to(folder).as_posix() for file in folder.glob("**/*.parquet")} == names


def test_rejected_rows_go_by_the_time_of_the_batches(tmp_path: Path) -> None:
    keep = {"rejected": timedelta(days=3)}
    tables = DeltaTables(tmp_path, SCHEMAS, keep=keep)
    times = pa.array([DAY], pa.int64()).cast(TIME)
    rejected = rows("rejected", 0, 1).set_column(4, "time", times)
    files = write_files(tmp_path, "rejected", rejected, 0)
    tables.roll_forward([new_manifest(0, files={"rejected": files}, time=9 * DAY, began=4 * DAY)])
    tables.compact()
    assert len(logged(tmp_path, "rejected")) == 1
    tables.roll_forward([new_manifest(1, time=9 * DAY, began=4 * DAY + 1)])
    tables.compact()
    assert logged(tmp_path, "rejected") == []


def test_files_of_a_release_without_statistics_go_too(tmp_path: Path) -> None:
    tables = DeltaTables(tmp_path, SCHEMAS, keep={"deliveries": timedelta(days=1)})
    file = write_file(tmp_path, "deliveries", dated_rows(0), 0)
    bare = TableFile(file.name, file.rows, file.bytes)
    tables.roll_forward([new_manifest(0, files={"deliveries": [bare]}, time=5 * DAY)])
    tables = DeltaTables(tmp_path, SCHEMAS, keep={"deliveries": timedelta(days=1)})
    tables.roll_forward([new_manifest(1, time=5 * DAY)])
    tables.compact()
    assert logged(tmp_path, "deliveries") == []


def test_a_table_of_an_older_release_gets_the_columns_that_are_new(tmp_path: Path) -> None:
    old = DeltaTables(tmp_path, OLD_SCHEMAS)
    without = rows("deliveries", 0, 10).drop_columns(["order"])
    files = [write_file(tmp_path, "deliveries", without, 0)]
    old.roll_forward([new_manifest(0, files={"deliveries": files})])
    opened = pipeline(tmp_path)
    opened.batch(1)
    read = DeltaTable(str(table_folder(tmp_path, "deliveries").local)).to_pyarrow_table()
    assert sorted(read["order"].to_pylist(), key=str) == sorted(
        [None] * 10 + list(range(20, 40)), key=str
    )
    opened.tables.compact(limit=1)
    (one,) = logged(tmp_path, "deliveries")
    assert (one["null_count.order"], one["min.order"]) == (10, 20)
