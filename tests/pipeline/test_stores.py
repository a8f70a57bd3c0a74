"""A stream in a store: what a folder gives, on a real S3 server and on Hadoop's own file system."""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from threading import Barrier

import pyarrow as pa
import pytest
from hypothesis import given, settings

from stentor.errors import FolderError, SettingsError
from stentor.pipeline.commit.failpoints import FAILPOINTS
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.storage import copies, folder
from stentor.pipeline.storage.copies import evict
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.storage.local import LocalStore
from stentor.pipeline.storage.objects import ObjectStore
from stentor.pipeline.storage.writers import check_conditional_puts, lock_folder
from stentor.pipeline.stream import shards
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.delta_log import open_table
from stentor.pipeline.tables.files import TABLES, table_folder
from tests.pipeline.test_crashes_in_process import _is_kept
from tests.programs.commit_batches import new_manifest as manifest
from tests.programs.killed_runs import killed_runs
from tests.programs.stream_in_process import BATCHES, history, run
from tests.support.hadoop import hdfs
from tests.support.s3 import BUCKET, S3Server

sys.path.insert(0, str(Path(__file__).parent))
from in_process import Stream, canonical
from test_stream_equals_engine import RESTART, cut_histories, expected

pytestmark = pytest.mark.xdist_group("a store")
_numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with S3Server(tmp_path_factory.mktemp("s3")).stopped_at_the_end() as running:
        yield running


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    with hdfs(tmp_path_factory.mktemp("hdfs")) as address:
        yield address


@pytest.fixture(scope="module", params=["s3", "hdfs"])
def place(request):
    """What makes the folder of a new stream, or the *named* one, in each kind of store."""
    if request.param == "s3":
        server = request.getfixturevalue("server")
        return lambda cache, named="": fresh(server, cache, named)
    address = request.getfixturevalue("hadoop")
    return lambda cache, named="": stream_folder(
        f"{address}/{named or f'alerts-{next(_numbers)}'}", cache=str(cache)
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("copies")


def fresh(server, cache, named="") -> StreamFolder:
    address = f"s3://{BUCKET}/{named or f'alerts-{next(_numbers)}'}"
    return stream_folder(address, options=server.options, cache=str(cache))


def rows_of(path: StreamFolder, name: str):
    return open_table(table_folder(path, name)).to_pyarrow_table().to_pylist()


def deliveries(path: StreamFolder):
    names = ("event", "subscription", "change", "seq")
    return sorted(tuple(row[name] for name in names) for row in rows_of(path, "deliveries"))


@given(cut=cut_histories())
@settings(max_examples=max(3, settings.default.max_examples // 25))
def test_the_tables_in_a_store_equal_the_engine(server, cache, cut):
    history, batches = cut
    path = fresh(server, cache)
    records = canonical(history)
    chosen = {"merge_least": 2, "merge_share": 0.01, "fold_after": 2, "shards": 2}
    stream = Stream(path, records.schema.field("attributes").type, plan="sharded", **chosen)
    for batch in batches:
        if batch == RESTART:
            stream.stop()
            stream.start()
        else:
            stream.batch([records.take(pa.array(part, pa.int64())) for part in batch])
    stream.stop()
    rows, refused = expected(history, None)
    assert deliveries(path) == rows
    assert len(rows_of(path, "rejected")) == refused
    assert not (path / "work").names()


def test_a_stream_in_hdfs_goes_on_where_it_stopped(hadoop, tmp_path, monkeypatch):
    monkeypatch.setattr(DeltaTables, "compact", DeltaTables.compact)  # which `run` replaces
    path = stream_folder(f"{hadoop}/alerts", cache=str(tmp_path))
    run(path)
    rows, _ = expected(history(), None)
    found = deliveries(path)
    assert not Counter(found) - Counter(rows)
    assert not Counter(row for row in rows if _is_kept(row[3])) - Counter(found)
    last = Commits(path).last()
    assert last is not None
    assert last.batch == BATCHES - 1
    assert (path / "bases").entries() == sorted(last.bases)
    assert not (path / "work").names()


def kept(path: StreamFolder, name: str) -> Counter[str]:
    rows = rows_of(path, name)
    return Counter(repr(row) for row in rows if name != "deliveries" or _is_kept(row["seq"]))


_random = Random("kills in a store")
KILLS = [(point,) for point in _random.sample(
    [one for one in FAILPOINTS if one not in ("columns-added", "table-created")], 6
)]  # fmt: skip


def test_killed_in_a_store_and_started_again_nothing_is_lost_or_doubled(server, cache, monkeypatch):
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STENTOR_TEST_COPIES", str(cache))
    every = [(), *KILLS]
    folders = [fresh(server, cache) for _ in every]
    killed = killed_runs(
        "tests.programs.stream_in_process", zip(map(str, folders), every, strict=True)
    )
    assert killed == [[False], *([True, False] for _ in KILLS)]
    for path, kills in zip(folders, every, strict=True):
        for name in TABLES:
            assert kept(path, name) == kept(folders[0], name), (kills, name)
        last = Commits(path).last()
        assert last is not None
        assert last.batch == BATCHES - 1
        assert (path / "bases").entries() == sorted(last.bases)
        assert (path / "segments").entries() == sorted(one.name for one in last.segments)
        assert not (path / "work").names()
    assert len(rows_of(folders[0], "deliveries")) > len(history()) / 4


def test_a_writer_that_was_away_is_shut_out_by_the_next(place, cache):
    path = place(cache)
    old, new = Commits(path), Commits(path)
    old.take_over("old")
    old.commit(manifest(0))
    new.take_over("new")
    with pytest.raises(FolderError, match="another writer"):
        old.commit(manifest(1))
    new.commit(manifest(1))
    new.commit(manifest(2))
    assert [one.batch for one in Commits(path).since(-1)] == [0, 0, 1, 2]
    assert [one.writer for one in Commits(path).since(0)] == ["new", "new"]


def test_of_writers_that_start_before_the_first_batch_the_last_one_goes_on(place, cache):
    path = place(cache)
    writers = [Commits(path) for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.take_over(f"writer {number}")
    assert Commits(path).last() is None
    for writer in writers[:2]:
        with pytest.raises(FolderError, match="another writer"):
            writer.commit(manifest(0))
    writers[2].commit(manifest(0))
    last = Commits(path).last()
    assert last is not None
    assert last.batch == 0


def test_a_writer_that_was_away_revises_nothing_that_counts(place, cache):
    path = place(cache)
    old, new = Commits(path), Commits(path)
    old.take_over("old")
    old.commit(manifest(0))
    new.take_over("new")
    new.commit(manifest(1))
    with pytest.raises(FolderError, match="another writer"):
        old.commit(manifest(0, revision=1, bases=["lost"]))
    last = Commits(path).last()
    assert last is not None
    assert (last.batch, last.bases) == (1, [])


def test_a_store_has_what_was_put_there_and_nothing_else(place, tmp_path):
    path = place(tmp_path)
    store = path.store
    assert store.names("") == store.names("work") == []
    assert store.put_if_absent("work/1-0/part", b"one", lambda stage: None)
    assert not store.put_if_absent("work/1-0/part", b"two", lambda stage: None)
    assert store.read("work/1-0/part") == b"one"
    assert store.read("work/1-0/part", 1, 2) == b"n"
    assert store.has("work/1-0/part")
    assert not store.has("work/1-0/other")
    assert store.names("work/1-0/part") == []  # a file is no folder
    with pytest.raises(FileNotFoundError) as missing:
        store.read("work/1-0/other")
    assert "\n" not in str(missing.value)
    (tmp_path / "file").write_bytes(bytes(10_000_000))
    store.put("waiting/1", tmp_path / "file")
    (tmp_path / "file").write_bytes(b"two")
    store.put("waiting/1", tmp_path / "file")  # a crash may have come before it was of use
    assert store.read("waiting/1") == b"two"
    assert store.names("") == ["waiting/1", "work/1-0/part"]
    (path / "waiting").remove(["1"])
    (path / "work").remove(["1-0", "not there"])
    assert store.names("") == []


def test_of_those_who_put_one_object_at_once_one_has_put_it(place, tmp_path):
    store = place(tmp_path).store
    for number in range(5):
        barrier = Barrier(6)

        def put(who, name=f"race/{number}", barrier=barrier):
            barrier.wait()
            return store.put_if_absent(name, f"of {who}".encode(), lambda stage: None)

        with ThreadPoolExecutor(6) as threads:
            won = list(threads.map(put, range(6)))
        assert sum(won) == 1
        assert store.read(f"race/{number}") == f"of {won.index(True)}".encode()


def test_what_a_killed_put_has_left_in_hdfs_goes_once_it_is_old(hadoop, tmp_path):
    from hdfs_native import Client

    path = stream_folder(f"{hadoop}/killed", cache=str(tmp_path))
    store = path.store

    def killed(stage):
        raise SystemExit

    for name in ("manifests/0.json", "manifests/1.json"):
        with pytest.raises(SystemExit):
            store.put_if_absent(name, b"half", killed)
    client = Client(hadoop)
    left = [one.path for one in client.list_status("/killed/manifests", recursive=True)]
    assert len(left) == 2
    client.set_times(left[0], 1, 1)
    assert store.names("") == []
    store.remove_abandoned()
    assert [one.path for one in client.list_status("/killed/manifests", recursive=True)] == left[1:]


def test_work_that_is_done_leaves_no_folder_in_hdfs(hadoop, tmp_path):
    from hdfs_native import Client

    path = stream_folder(f"{hadoop}/done", cache=str(tmp_path))
    (path / "work" / "7-ab" / "claims").claim("0")
    (path / "work" / "8-cd").claim("0")
    (path / "work" / "7-ab").remove_all()
    found = [one.path for one in Client(hadoop).list_status("/done", recursive=True)]
    assert sorted(found) == ["/done/work", "/done/work/8-cd", "/done/work/8-cd/0"]


def test_a_base_that_came_damaged_is_refused_whatever_index_is_wanted(
    server, cache, tmp_path, monkeypatch
):
    path = fresh(server, cache)
    records = canonical(history())
    attributes = records.schema.field("attributes").type
    stream = Stream(path, attributes, merge_least=1)
    for start in (0, 40):
        stream.batch([records.slice(start, 20)])
        stream.wait_for_bases()
    stream.stop()
    fetch = ObjectStore.fetch

    def damaged(self, name, file):
        fetch(self, name, file)
        if name.endswith("subscriptions/ids.data.npy"):
            file.write_bytes(file.read_bytes()[:-1] + b"?")

    monkeypatch.setattr(ObjectStore, "fetch", damaged)
    for index in ("auto", "scan"):
        shards.forget()
        there = stream_folder(path.address, options=server.options, cache=str(tmp_path / index))
        with pytest.raises(FolderError, match="ids"):
            Stream(there, attributes, index=index, merge_least=1000).batch([records.slice(60, 5)])


def test_whether_a_file_is_there_is_asked_without_a_list(server, cache, monkeypatch):
    path = fresh(server, cache)
    path.put_if_absent("tables/deliveries/_partitioned_by_date", b"")
    monkeypatch.setattr(ObjectStore, "names", None)
    assert (path / "tables" / "deliveries").has("_partitioned_by_date")
    assert not (path / "tables" / "events").has("_partitioned_by_date")


class Careless(LocalStore):
    """A store that takes whatever comes, and says that all is well."""

    def put_if_absent(self, name, content, reached):
        file = self._root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return True


def test_a_store_that_takes_a_second_object_of_one_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(folder.SCHEMES, "gs", lambda address, options: Careless(tmp_path / "all"))
    path = stream_folder("gs://bucket/alerts", cache=str(tmp_path / "copies"))
    with pytest.raises(FolderError, match="took a second object of the same name"):
        check_conditional_puts(path)
    with pytest.raises(FolderError, match="conditional puts"):
        lock_folder(path)


@pytest.mark.parametrize("address", ["dbfs:/alerts", "s3:/bucket/out", "ftp://host/alerts"])
def test_an_address_that_nothing_serves_is_refused(address):
    with pytest.raises(SettingsError, match="which Stentor does not know"):
        stream_folder(address)


def test_a_bucket_alone_is_refused():
    with pytest.raises(SettingsError, match="names a bucket alone"):
        stream_folder("s3://bucket")


def test_secrets_of_a_store_are_never_shown():
    path = stream_folder("s3://bucket/alerts", options={"aws_secret_access_key": "very secret"})
    assert "very secret" not in f"{path!r} {path}"


def test_a_store_that_does_not_answer_is_named(tmp_path):
    options = {"aws_endpoint_url": "http://127.0.0.1:9", "aws_allow_http": "true"}
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "c"}
    path = stream_folder("s3://bucket/alerts", options=options | keys, cache=str(tmp_path))
    with pytest.raises(FolderError, match=r"s3://bucket/alerts/.*check that the store answers"):
        Commits(path).last()


def test_a_machine_fetches_a_file_once_and_a_folder_as_a_whole(place, tmp_path):
    here, there = (place(tmp_path / name, "copied") for name in ("here", "there"))
    base = here / "bases" / "0-0-ab"
    base.new("index/rows").write_bytes(b"rows")
    base.new("manifest.json").write_bytes(b"{}")
    base.keep_whole()
    (here / "segments").new("1-cd").write_bytes(b"segment")
    (here / "segments").keep("1-cd")
    assert (there / "segments").file("1-cd").read_bytes() == b"segment"
    seen = []
    copy = (there / "bases" / "0-0-ab").whole(seen.append)
    assert (copy / "index" / "rows").read_bytes() == b"rows"
    (here / "segments").remove(["1-cd"])
    here.remove_all()
    assert (there / "bases" / "0-0-ab").whole(seen.append) == copy
    assert len(seen) == 1
    assert (there / "segments").file("1-cd").read_bytes() == b"segment"
    with pytest.raises(FolderError, match="is missing"):
        (there / "segments").file("2-ef")


def test_old_copies_go_and_the_newest_stay_within_the_size(tmp_path, monkeypatch):
    now = copies.time.time()
    hour = copies.ABANDONED + 60
    for number in range(4):
        copy = tmp_path / "alerts-1" / "segments" / str(number)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(bytes(1000))
        copies.os.utime(copy, (now - hour + number, now - hour + number))
    base = tmp_path / "alerts-1" / "bases" / "0-0-ab"
    base.mkdir(parents=True)
    (base / "rows").write_bytes(bytes(1000))
    for one in (base / "rows", base):
        copies.os.utime(one, (now - 2 * hour, now - 2 * hour))
    evict(tmp_path, most_bytes=2500)
    assert sorted(one.name for one in tmp_path.glob("*/*/*")) == ["2", "3"]
    evict(tmp_path, most_bytes=0)
    assert not list(tmp_path.glob("*/*/*"))


def test_what_a_task_writes_or_has_just_asked_for_is_not_evicted(tmp_path, monkeypatch):
    now = copies.time.time()
    for name, age in {"segments/new": 0, "tables/events": 9_000, "work/1-ab": 9_000}.items():
        file = tmp_path / "alerts-1" / name
        file.parent.mkdir(parents=True)
        file.write_bytes(bytes(1000))
        copies.os.utime(file, (now - age, now - age))
    evict(tmp_path, most_bytes=0)
    assert len(list(tmp_path.glob("*/*/*"))) == 3
    monkeypatch.setattr(copies.time, "time", lambda: now + copies.UNUSED + 1)
    evict(tmp_path)
    assert not list(tmp_path.glob("*/*/*"))


def test_a_killed_store_is_told_and_the_stream_goes_on_when_it_is_back(server, cache):
    path = fresh(server, cache)
    records = canonical(history())
    stream = Stream(path, records.schema.field("attributes").type)
    stream.batch([records.slice(0, 20)])
    server.kill()
    try:
        with pytest.raises(FolderError, match="check that the store answers"):
            stream.batch([records.slice(20, 20)])
    finally:
        server.start()
    shards.forget()
    stream.start()
    stream.batch([records.slice(20, 20)])
    stream.stop()
    rows, _ = expected(history()[:40], None)
    assert deliveries(path) == rows
