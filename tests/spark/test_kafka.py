"""Kafka in and out, against a real broker that the tests fetch, start and stop."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from stentor.errors import FolderError, SettingsError
from stentor.pipeline import tables
from stentor.pipeline.config.file import load, start_from
from stentor.pipeline.sinks.kafka import connector_jars, deliveries_to_kafka
from stentor.pipeline.sources import SourceSettings, open_source
from stentor.pipeline.sources.frames import canonical
from stentor.pipeline.spark import jars

sys.path.insert(0, str(Path(__file__).parent))

CONFIG = """
[[source]]
kind = "records"
format = "kafka"
topic = "{topic}"
servers = "{servers}"
max_records = 4
[schema]
price = "number"
[order]
by = "n"
[tables]
path = "pipeline"
[trigger]
available_now = true
[kafka]
topic = "{topic}.out"
servers = "{servers}"
"""


def produce(servers: str, topic: str, values: list[Any]) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value)
        producer.produce(topic, None if value is None else text.encode(), key=b"ignored")
    assert producer.flush(30) == 0


def consume(servers: str, topic: str) -> list[tuple[str, dict[str, Any], dict[str, bytes]]]:
    """Key, value and headers of all messages in *topic*."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "tests"})
    found = []
    try:
        for partition in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
            place = TopicPartition(topic, partition, 0)
            _, stop = consumer.get_watermark_offsets(place, timeout=30)
            consumer.assign([place])
            for _ in range(stop):
                message = consumer.poll(30)
                assert message is not None
                assert message.error() is None
                headers = dict(message.headers() or [])
                found.append((message.key().decode(), json.loads(message.value()), headers))
    finally:
        consumer.close()
    return found


def test_messages_come_with_their_topic_partition_and_offset(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    messages = [{"id": "a", "price": 1}, "nonsense", {"id": "b", "price": 2}, "", None]
    produce(servers, topic, messages)
    source = SourceSettings(
        format="kafka", kind="events", topic=topic, servers=servers, max_records=2
    )
    frame = open_source(spark, source, {"price": "number"}, streaming=False)
    rows = sorted(canonical(frame).collect(), key=lambda row: row.offset)
    assert [(row.id, row.offset, row.problem is None) for row in rows] == [
        ("a", 0, True),
        (None, 1, False),
        ("b", 2, True),
        (None, 4, False),  # no value: nobody is to take it for a message that never was
    ]
    assert {row.source for row in rows} == {f"kafka:{topic}/0"}
    assert rows[1].raw == "nonsense"
    sizes: list[int] = []
    query = (
        canonical(open_source(spark, source, {"price": "number"}))
        .writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sizes == [2, 2, 1]  # that one is blank shows when it is read


def run(file: Path, spark: SparkSession) -> None:
    query = start_from(load(file), spark)
    query.awaitTermination()


def test_a_stream_runs_from_topic_to_topic_and_goes_on_where_it_stopped(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "stentor.toml"
    file.write_text(CONFIG.format(topic=topic, servers=servers))
    records = [
        {"op": "subscribe", "id": "ana", "expression": "price < 10"},
        {"op": "publish", "id": "e1", "price": 5},
        {"op": "publish", "id": "e2", "price": 50},
        "nonsense",
        {"op": "subscribe", "id": "bo", "expression": "price > 1"},
        {"op": "publish", "id": "e3", "price": 7},
    ]
    numbered = [one if isinstance(one, str) else {**one, "n": n} for n, one in enumerate(records)]
    produce(servers, topic, numbered[:5])
    run(file, spark)
    produce(servers, topic, numbered[5:])
    run(file, spark)
    sent = consume(servers, f"{topic}.out")
    assert sorted((value["event"], value["subscription"]) for _, value, _ in sent) == [
        ("e1", "ana"),
        ("e3", "ana"),
        ("e3", "bo"),
    ]
    deliveries = tables.read(spark, tmp_path / "pipeline", "deliveries").collect()
    expected = {
        f"{row.event}/{row.subscription}/matched/{row.seq}": row.batch for row in deliveries
    }
    assert {key: int(headers["batch"]) for key, _, headers in sent} == expected
    assert all(value["time"].endswith(("Z", "+00:00")) for _, value, _ in sent)
    rejected = tables.read(spark, tmp_path / "pipeline", "rejected").collect()
    assert [(row.record, row.source, row.offset) for row in rejected] == [
        ("nonsense", f"kafka:{topic}/0", 3)
    ]


def test_what_was_committed_and_not_sent_is_sent_at_the_next_start(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    text = CONFIG.format(topic=topic, servers=servers)
    out = f'[kafka]\ntopic = "{topic}.out"\nservers = "{servers}"\n'
    file = tmp_path / "stentor.toml"
    file.write_text(text.replace(out, ""))
    produce(
        servers,
        topic,
        [{"op": "subscribe", "id": "ana", "expression": "price < 10", "n": 0}]
        + [{"op": "publish", "id": f"e{n}", "price": 5, "n": n} for n in range(1, 9)],
    )
    run(file, spark)  # as if each crash had come right after a commit
    outbox = deliveries_to_kafka(
        spark, tmp_path / "pipeline", topic=f"{topic}.out", servers=servers
    )
    assert consume(servers, f"{topic}.out") == []
    outbox.send_waiting()
    first = consume(servers, f"{topic}.out")
    assert sorted(value["event"] for _, value, _ in first) == [f"e{n}" for n in range(1, 9)]
    outbox.send_waiting()
    assert len(consume(servers, f"{topic}.out")) == 8
    marker = tmp_path / "pipeline" / "sent" / f"{topic}.out.batch"
    marker.unlink()  # a crash before it was written: sent twice, under the same keys
    outbox.send_waiting()
    again = consume(servers, f"{topic}.out")
    assert len(again) == 16
    assert {key for key, _, _ in again} == {key for key, _, _ in first}
    marker.write_text("seven")
    with pytest.raises(FolderError, match="does not hold the number of a batch"):
        outbox.send_waiting()


def test_a_jar_that_is_not_the_pinned_one_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text(f"# one jar\n{'0' * 64}  org.example:thing:1.0\n")

    def fetch(wanted: list[jars.Jar], scratch: Path) -> str:
        (scratch / "jars").mkdir()
        for jar in wanted:
            (scratch / "jars" / jar.file).write_bytes(b"something else")
        return ""

    monkeypatch.setattr(jars, "_run_ivy", fetch)
    with pytest.raises(SettingsError, match=r"thing-1.0.jar has the sha256 .*, expected 0000"):
        jars.fetched_jars(listed, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    monkeypatch.setattr(jars, "_run_ivy", lambda wanted, scratch: "no route to host\n")
    with pytest.raises(
        SettingsError, match=r"1 jars could not be fetched .*offline.*no route to host"
    ):
        jars.fetched_jars(listed, tmp_path / "cache")


def test_a_connector_for_another_spark_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.0")
    with pytest.raises(SettingsError, match=r"spark-sql-kafka-0-10_2.13:4.1.0"):
        connector_jars()
