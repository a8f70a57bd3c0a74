"""Topics of Kafka: the value of a message is a line of JSON.

Whether a topic exists is learned from Kafka itself, in its own protocol: no Java, no client.
Request and answer are those of the API "Metadata", version 7, which every broker since 2.1 speaks
and which, unlike older ones, does not create the topic.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from stentor.errors import SettingsError
from stentor.pipeline.sources import SourceSettings
from stentor.pipeline.sources.base import TextSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_METADATA, _VERSION = 3, 7
_UNKNOWN_TOPIC: Final = 3
_TIMEOUT: Final = 3.0
_MOST_BYTES: Final = 1 << 24
_NO_CONNECTOR = (
    "this session lacks Spark's connector for Kafka; make it with stentor.pipeline.session("
    'settings={"spark.jars": ",".join(stentor.pipeline.sinks.kafka.connector_jars())})'
)


class Kafka(TextSource):
    """A topic."""

    title: ClassVar[str] = "Kafka"
    keys: ClassVar[frozenset[str]] = frozenset({"topic", "servers", "max_records"})
    required: ClassVar[Mapping[str, str]] = {"topic": "its name", "servers": "host:port"}
    suffixes: ClassVar[tuple[str, ...]] = ()
    jars: ClassVar[tuple[str, ...]] = ("kafka",)
    has_schema: ClassVar[bool] = False
    is_looked_into: ClassVar[bool] = False
    has_lanes: ClassVar[bool] = True
    appended: ClassVar[Literal["files", "messages", ""]] = "messages"

    def called(self, settings: SourceSettings) -> str:
        """The topic."""
        return f"kafka:{settings.topic}"

    def where(self, settings: SourceSettings) -> str:
        """The topic, and who has it."""
        return f"the topic {settings.topic!r} on {settings.servers}"

    def mistakes(self, settings: SourceSettings, *, is_inferred: bool) -> Iterator[str]:
        """None that can be seen from here."""
        yield from ()

    def option_mistakes(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """That an option is said in settings of its own."""
        for name in options:  # for Spark upper and lower case are the same
            if name.lower() in ("subscribe", "kafka.bootstrap.servers"):
                yield "options", f"{name} has a key of its own in [[source]]"

    def remote_mistakes(self, settings: SourceSettings) -> Iterator[str]:
        """Whether there is no such topic; with options of Kafka's own nothing is checked."""
        is_plain = not any(name.startswith("kafka.") for name in settings.options)
        if settings.topic and settings.servers and is_plain:
            mistake = topic_mistake(settings.servers, settings.topic)
            if mistake is not None:
                yield f"{settings.name}: {mistake}"

    def local_files(self, settings: SourceSettings) -> list[Path]:
        """None."""
        return []

    def texts(self, spark: SparkSession, settings: SourceSettings, *, streaming: bool) -> DataFrame:
        """The messages' values."""
        from pyspark.sql import functions as F  # noqa: N812

        from stentor.pipeline.sources.columns import Origin
        from stentor.pipeline.sources.readers import load, reader_of

        if not (settings.topic and settings.servers):
            raise SettingsError(f"{settings.name}: Kafka needs a topic and servers (host:port)")
        reader = reader_of(spark, settings, streaming=streaming)
        if streaming and settings.max_records is not None:
            reader = reader.option("maxOffsetsPerTrigger", settings.max_records)
        reader = reader.option("kafka.bootstrap.servers", settings.servers)
        reader = reader.option("subscribe", settings.topic)
        for name, most in QUICK_TO_NOTICE.items():
            if name not in settings.options:
                reader = reader.option(name, most)
        if "startingOffsets" not in settings.options:
            reader = reader.option("startingOffsets", "earliest")
        df = load(reader, "kafka", settings, _NO_CONNECTOR)
        origin = F.concat(F.lit("kafka:"), "topic", F.lit("/"), F.col("partition").cast("string"))
        return df.select(
            # A message without a value may mean an end: it is reported, as what it is in JSON.
            F.coalesce(F.col("value").cast("string"), F.lit("null")).alias(Origin.RAW),
            origin.alias(Origin.SOURCE),
            F.col("offset").alias(Origin.OFFSET),
        )

    def kinds(self, spark: SparkSession, settings: SourceSettings) -> dict[str, str]:
        """Only those of changes, which have none: a topic is not looked into."""
        if settings.kind == "changes":
            return {}
        raise SettingsError(f"{settings.name}: declare the schema; it is not inferred from Kafka")

    def explain_failure(self, text: str) -> SettingsError | None:
        """Nothing that Spark does not say itself."""
        return None


#: Kafka's own patience, in milliseconds: one that is down is noticed within 30 seconds.
QUICK_TO_NOTICE: Final = {
    "kafka.default.api.timeout.ms": "25000",
    "kafka.request.timeout.ms": "20000",
}


def topic_mistake(servers: str, topic: str) -> str | None:
    """What is wrong with *topic* on *servers* (host:port, several with commas); None if nothing.

    Also None where no server answers in time or in plain text: then nobody knows.
    """
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not port.isdecimal():
            return f"expected servers like host:9092, got {server.strip()!r}"
        try:
            error = _topic_error(host.strip("[]"), int(port), topic)
        except (OSError, struct.error, ValueError):
            continue
        if error == _UNKNOWN_TOPIC:
            return f"{server.strip()} has no topic {topic!r}; create it, or correct its name"
        return None
    return None


def _topic_error(host: str, port: int, topic: str) -> int:
    """The error code that a broker has for *topic*."""
    name = topic.encode()
    client = b"stentor"
    body = struct.pack(">hhih", _METADATA, _VERSION, 1, len(client)) + client
    body += struct.pack(">ih", 1, len(name)) + name + b"\0"  # no topic is created
    with socket.create_connection((host, port), _TIMEOUT) as connection:
        connection.settimeout(_TIMEOUT)
        connection.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", _received(connection, 4))
        if not 0 < size <= _MOST_BYTES:
            raise ValueError(size)
        return _error_code(_received(connection, size))


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return data


def _error_code(answer: bytes) -> int:
    """The error code of the first topic in *answer*."""
    position = 8  # the correlation id, and how long the client was throttled
    (brokers,) = struct.unpack_from(">i", answer, position)
    position += 4
    for _ in range(brokers):
        position = _after_string(answer, position + 4)  # its number, its host
        position = _after_string(answer, position + 4)  # its port, its rack
    position = _after_string(answer, position) + 4  # the cluster, its controller
    (topics,) = struct.unpack_from(">i", answer, position)
    if topics < 1:
        raise ValueError(topics)
    code: int = struct.unpack_from(">h", answer, position + 4)[0]
    return code


def _after_string(answer: bytes, position: int) -> int:
    length: int = struct.unpack_from(">h", answer, position)[0]
    return position + 2 + max(0, length)
