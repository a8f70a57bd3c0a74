"""One Spark session for all tests of the pipeline, in one process of the test run.

Without PySpark or Java these tests are skipped, and say so; STENTOR_REQUIRE_SPARK=1 has them fail.
"""

import os
import re
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stentor.pipeline.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent


def _missing() -> str | None:
    """Why nothing here can run, unless it has to."""
    if os.environ.get("STENTOR_REQUIRE_SPARK") == "1":
        return None
    if find_spec("pyspark") is None:
        return "NOT TESTED: the pipeline, because PySpark is not installed"
    if find_java() is None:
        return "NOT TESTED: the pipeline, because no Java 17 or newer was found"
    return None


class _NotTested(pytest.File):
    """A file of tests that is not even imported: it would import PySpark."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip(str(_missing()), allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    found = yield
    if not found or _missing() is None:
        return found
    return [_NotTested.from_parent(parent, path=file_path)]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep to one worker of pytest-xdist (`--dist loadgroup`) what shares the session."""
    for item in items:
        is_ours = _HERE in item.path.parents
        if is_ours and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """A session with two workers."""
    from stentor.pipeline.spark.sessions import session

    made = session("local[2,4]", name="stentor tests", quick=True, settings=_connectors())
    yield made
    made.stop()


def _connectors() -> dict[str, str]:
    """Spark takes jars only when a session begins; without them tests are skipped."""
    from stentor.errors import SettingsError
    from stentor.pipeline.sinks.kafka import connector_jars
    from stentor.pipeline.spark.s3 import s3_jars

    try:
        return {"spark.jars": ",".join(connector_jars() + s3_jars())}
    except SettingsError:
        if os.environ.get("STENTOR_REQUIRE_SPARK") == "1":
            raise
        return {}


@pytest.fixture(scope="session")
def servers(spark: "SparkSession") -> Iterator[str]:
    """A broker; where its jars cannot be had the tests are skipped, unless they must run."""
    from stentor.errors import SettingsError
    from stentor.pipeline.sinks.kafka import connector_jars
    from stentor.pipeline.spark import jars
    from tests.spark.kafka_broker import kafka_broker

    try:
        connector_jars()
        jars.fetched_jars(Path(__file__).with_name("kafka_broker.txt"))
    except SettingsError as error:
        if os.environ.get("STENTOR_REQUIRE_SPARK") == "1":
            raise
        pytest.skip(f"NOT TESTED: Kafka, because {error}")
    with kafka_broker() as address:
        yield address


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """A topic of one partition, so that there is an order, and one for deliveries of two."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [NewTopic(name, 1, 1), NewTopic(f"{name}.out", 2, 1)]
    for made in admin.create_topics(wanted).values():
        made.result(timeout=30)
    return name
