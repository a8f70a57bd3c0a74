"""A stream of Spark whose folder, checkpoint and source lie in S3, on a real server."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import stentor
from stentor.pipeline import tables
from stentor.pipeline.config.file import load, start_from
from stentor.pipeline.storage.folder import stream_folder
from tests.support.s3 import BUCKET, S3Server

CONFIG = """
[[source]]
kind = "records"
format = "json"
path = "s3a://{bucket}/in"
max_files = 1
[schema]
price = "number"
[order]
by = "n"
[tables]
path = "s3://{bucket}/alerts"
local_cache = "copies"
[storage]
aws_endpoint_url = "{url}"
aws_access_key_id = "test"
aws_secret_access_key = "${{STENTOR_TEST_SECRET}}"
aws_region = "us-east-1"
[trigger]
available_now = true
"""


@pytest.fixture
def server(tmp_path):
    (tmp_path / "s3").mkdir()
    with S3Server(tmp_path / "s3").stopped_at_the_end() as running:
        yield running


def records() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for n in range(40):
        if n % 4 == 0:
            found.append({"op": "subscribe", "id": f"s{n}", "expression": f"price < {n}", "n": n})
        else:
            found.append({"op": "publish", "id": f"e{n}", "price": n % 13, "n": n})
    return found


def test_a_stream_in_s3_delivers_what_an_engine_does_and_goes_on_where_it_stopped(
    spark: SparkSession, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STENTOR_TEST_SECRET", "testtest")
    source = stream_folder(f"s3://{BUCKET}/in", options=server.options, cache=str(tmp_path / "c"))
    file = tmp_path / "stentor.toml"
    file.write_text(CONFIG.format(bucket=BUCKET, url=server.url))
    every = records()
    for number, part in enumerate((every[:15], every[15:30], every[30:])):
        lines = "".join(json.dumps(one) + "\n" for one in part)
        source.new(f"{number}.jsonl").write_text(lines)
        source.keep(f"{number}.jsonl")
        if number:  # the first two are there at the first start
            start_from(load(file), spark).awaitTermination()
    engine = stentor.Engine(clock=None)
    expected = set()
    for one in every:
        if one["op"] == "subscribe":
            engine.subscribe(str(one["id"]), str(one["expression"]))
        else:
            answer = engine.publish({"id": one["id"], "price": one["price"]})
            expected |= {(one["id"], id) for id in answer}
    path = stream_folder(f"s3://{BUCKET}/alerts", options=server.options)
    found = [
        (row.event, row.subscription) for row in tables.read(spark, path, "deliveries").collect()
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert (path / "checkpoint" / "offsets").names()
    assert not (path / "work").names()
    # As a user who has nothing but the address reads it.
    for key in ("access.key", "secret.key", "endpoint", "endpoint.region"):
        spark.conf.unset(f"fs.s3a.bucket.{BUCKET}.{key}")
    secrets = {"access.key": "test", "secret.key": "testtest", "endpoint": server.url}
    own = {f"spark.hadoop.fs.s3a.bucket.{BUCKET}.{key}": value for key, value in secrets.items()}
    for key, value in own.items():
        spark.conf.set(key, value)
    try:
        assert tables.read(spark, f"s3://{BUCKET}/alerts", "deliveries").count() == len(found)
    finally:
        for key in own:
            spark.conf.unset(key)
    by_hand = tables.read(spark, path.address, "deliveries", storage=server.options)
    assert by_hand.count() == len(found)
