"""The door of a stream: its sources get what is posted, clients what its tables say; no Spark."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from stentor import Engine
from stentor.errors import RecordError, SettingsError
from stentor.pipeline.tables.files import TIME, table_folder, table_schemas
from stentor.service.door import DoorCore, read_config, source_for
from stentor.service.records import Records
from stentor.service.settings import ServeSettings
from tests.support.linked_brokers import Clock

CONFIG = """
[[source]]
kind = "records"
format = "json"
path = "records"

[order]
by = "seq"
time = "time"

[schema]
x = "number"
loc = "point"

[tables]
path = "pipeline"
"""


class Stream:
    """What a stream would do: reads the source's files, and commits batches to the tables."""

    def __init__(self, folder: Path, seeded: random.Random) -> None:
        self._folder, self._seeded = folder, seeded
        self._engine = Engine("scan", clock=None)
        self._taken: set[str] = set()
        self._batch = 0
        self.said: list[tuple[str, str, str]] = []
        self.rejected: list[Exception] = []

    def run(self) -> None:
        """Take in what is there, as one batch or several."""
        records = []
        for file in sorted((self._folder / "records").glob("*.jsonl")):
            if file.name not in self._taken:
                self._taken.add(file.name)
                records += [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
        assert [one["seq"] for one in records] == sorted({one["seq"] for one in records})
        while records:
            count = self._seeded.randint(1, len(records))
            self._commit(records[:count])
            del records[:count]

    def _commit(self, records: list[dict[str, Any]]) -> None:
        rows = []
        for record in records:
            [answer] = self._engine.step([record])
            if isinstance(answer, Exception):
                self.rejected.append(answer)
                continue
            found: list[tuple[str, str, str]] = []
            id, op = record["id"], record["op"]
            if op == "publish":
                found = [(id, one, "matched") for one in answer]
            elif op in ("update", "withdraw"):
                for change in ("entered", "left", "stayed"):
                    found += [(id, one, change) for one in getattr(answer, change)]
            else:
                for change in ("added", "removed"):
                    found += [(one, id, change) for one in getattr(answer, change)]
            self.said += found
            when = {"seq": record["seq"], "time": 0, "batch": self._batch, "order": record["seq"]}
            rows += [
                {"event": event, "subscription": name, "change": change, "score": 1.0, **when}
                for event, name, change in found
            ]
        schema = table_schemas(pa.struct([]))["deliveries"]
        plain = pa.schema(
            [(one.name, pa.int64() if one.type == TIME else one.type) for one in schema]
        )
        table = pa.Table.from_pylist(rows, schema=plain).cast(schema)
        folder = table_folder(self._folder / "pipeline", "deliveries").local
        write_deltalake(folder, table, mode="append")
        self._batch += 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "stentor.toml").write_text(CONFIG)
    return tmp_path


def door_of(folder: Path, clock: Clock) -> DoorCore:
    settings = ServeSettings(folder=folder / "door", index="scan", pipeline=folder)
    return DoorCore(settings, clock)


def queued(core: DoorCore, owner: str, client: str) -> list[dict[str, Any]]:
    rows = core.store.rows_after((owner, client), 0, 10_000)
    return [one for row in rows for one in msgspec.json.decode(b"[%b]" % row.body)]


@pytest.mark.parametrize("seed", range(4))
def test_clients_of_a_door_are_given_what_the_stream_delivers_each_once(
    folder: Path, seed: int
) -> None:
    """Whatever is killed when: the door between any two steps, the stream anywhere in between."""
    seeded, clock = random.Random(seed), Clock()
    stream, core = Stream(folder, seeded), door_of(folder, clock)
    bodies: dict[tuple[str, str], set[int]] = {}
    for _ in range(25):
        owner = seeded.choice("ab")
        op = seeded.choice(["subscribe", "publish", "publish", "update", "withdraw", "move"])
        record: dict[str, Any] = {"op": op, "id": f"s{seeded.randint(0, 3)}"}
        if op in ("publish", "update", "withdraw"):
            record["id"] = f"e{seeded.randint(0, 3)}"
        if op in ("publish", "update"):
            record |= {"x": seeded.randint(0, 4), "loc": [0, 0]}
            record |= {"until": 9e8} if seeded.random() < 0.6 else {}
            bodies.setdefault((owner, record["id"]), set()).add(record["x"])
        elif op == "subscribe":
            record |= {"expression": f"x >= {seeded.randint(0, 4)}", "client": "c"}
        elif op == "move":
            record["at"] = [0, 0]
        core.run([Records(owner, "c", [record])], {})
        clock.seconds += 1
        if seeded.random() < 0.4:
            core.tick()
        if seeded.random() < 0.4:
            stream.run()
        if seeded.random() < 0.3:
            core.store._database.close()
            core = door_of(folder, clock)
    for _ in range(2):
        core.tick()
        stream.run()
    core.tick()
    for owner in "ab":
        found = queued(core, owner, "c")
        assert [one["seq"] for one in found] == list(range(1, len(found) + 1))
        given = [(one["event"]["id"], one["subscription"], one["change"]) for one in found]
        words = {"matched": "added"}
        wanted = [
            (event.partition("/")[2], name.partition("/")[2], words.get(change, change))
            for event, name, change in stream.said
            if name.startswith(owner + "/") and event.startswith(owner + "/")
        ]
        assert sorted(given) == sorted(wanted)
        for one in found:
            assert one["event"]["x"] in bodies[owner, one["event"]["id"]]
    core.close()


def test_a_file_that_was_written_before_a_kill_is_not_written_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    core = door_of(folder, clock)
    core.run([Records("a", "c", [{"op": "publish", "id": "e1", "x": 1}])], {})
    with monkeypatch.context() as killed:

        def die(*_: Any) -> None:
            raise KeyboardInterrupt

        killed.setattr(core.door, "forget_lines", die)
        with pytest.raises(KeyboardInterrupt):
            core.tick()
    core.store._database.close()
    core = door_of(folder, clock)
    core.run([Records("a", "c", [{"op": "publish", "id": "e2", "x": 1}])], {})
    core.tick()
    files = sorted((folder / "records").glob("*.jsonl"))
    lines = [msgspec.json.decode(line) for one in files for line in one.read_bytes().splitlines()]
    assert [one["id"] for one in lines] == ["a/e1", "a/e2"]
    core.close()


def test_events_of_other_producers_are_given_as_the_tables_have_them(folder: Path) -> None:
    clock = Clock()
    core = door_of(folder, clock)
    subscribe = {"op": "subscribe", "id": "s", "expression": "x > 0"}
    core.run([Records("a", "c", [subscribe])], {})
    stream = Stream(folder, random.Random(1))
    stream._commit([{"seq": 1, "op": "subscribe", "id": "a/s", "expression": "x > 0"}])
    stream._commit([{"seq": 2, "op": "publish", "id": "sensor-7", "x": 1}])
    core.tick()
    assert [one["event"] for one in queued(core, "a", "c")] == [{"id": "sensor-7"}]
    core.close()


def test_what_a_stream_had_delivered_before_its_door_was_made_is_nobodys(folder: Path) -> None:
    stream = Stream(folder, random.Random(1))
    stream._commit([{"seq": 1, "op": "subscribe", "id": "a/s", "expression": "x > 0"}])
    stream._commit([{"seq": 2, "op": "publish", "id": "a/e", "x": 1}])
    core = door_of(folder, Clock())
    core.run([Records("a", "c", [{"op": "subscribe", "id": "s", "expression": "x > 0"}])], {})
    core.tick()
    assert queued(core, "a", "c") == []
    core.close()


def test_a_stream_without_a_source_to_append_to_is_refused(folder: Path) -> None:
    with pytest.raises(SettingsError, match="name the folder of a stream"):
        read_config(folder / "nothing")
    text = CONFIG.replace('format = "json"', 'format = "csv"')
    (folder / "stentor.toml").write_text(text)
    with pytest.raises(SettingsError, match="no source that events can be appended to"):
        source_for(read_config(folder), "events")


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"op": "subscribe", "id": "s", "expression": "x > 1", "labels": {"a": "b"}}, "labels"),
        ({"op": "subscribe", "id": "s", "expression": "x > 1", "owner": "ana"}, "owner"),
        ({"op": "publish", "id": "e", "x": 5, "among": {"a": "b"}}, "among"),
        ({"op": "update", "id": "e", "x": 5, "among": {"a": "b"}}, "among"),
    ],
)
def test_what_the_stream_would_reject_is_refused_at_its_door(
    folder: Path, record: dict[str, Any], field: str
) -> None:
    core = door_of(folder, Clock())
    output = core.run([Records("a", "c", [record])], {})
    [(_, error)] = output.answers[0].errors
    assert isinstance(error, RecordError)
    assert error.field == field
    assert core.door.lines("changes") == core.door.lines("events") == []
    core.close()
