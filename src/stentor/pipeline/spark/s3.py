"""Spark's own way to S3 (`s3a://`), for checkpoints and sources: its jars, and its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from stentor.errors import SettingsError
from stentor.pipeline.spark.jars import fetched_jars
from stentor.pipeline.spark.sessions import is_of_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECTOR: Final = Path(__file__).with_name("s3_connector.txt")
#: The Spark that the pinned jars are for.
_SPARK: Final = "4.2."
#: What obstore's options are called for `s3a`.
_KEYS: Final = {
    "aws_access_key_id": "access.key",
    "aws_secret_access_key": "secret.key",
    "aws_session_token": "session.token",
    "aws_endpoint_url": "endpoint",
    "aws_region": "endpoint.region",
}


def s3_jars() -> list[str]:
    """The jars with which Spark reads and writes `s3a://`, fetched once (14 MB), each checked.

    For `session(settings={"spark.jars": ",".join(s3_jars())})`: Spark takes jars only when a
    session begins. Platforms with a Spark of their own have them.
    """
    if not pyspark.__version__.startswith(_SPARK):
        raise SettingsError(
            f"the pinned jars for S3 are for Spark {_SPARK}x, this is {pyspark.__version__}; name "
            "the right ones yourself: spark.jars.packages = org.apache.hadoop:hadoop-aws:VERSION, "
            "in the version of Hadoop that Spark has"
        )
    return [str(jar) for jar in fetched_jars(_CONNECTOR)]


def let_spark_reach(spark: SparkSession, address: str, options: Mapping[str, str]) -> None:
    """Have the session *spark* reach the bucket of *address* as *options* say; no other bucket."""
    scheme, _, rest = address.partition("://")
    if scheme not in ("s3", "s3a") or is_of_connect(spark):  # whose server has its own settings
        return
    _check_there(spark)
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    given = {**({"aws_endpoint_url": endpoint} if endpoint else {}), **options}
    if "aws_endpoint_url" in given:  # such servers have one address for all buckets
        given.setdefault("aws_region", os.environ.get("AWS_REGION", "us-east-1"))
    bucket = f"fs.s3a.bucket.{rest.partition('/')[0]}"
    for name, key in _KEYS.items():
        if name in given:
            spark.conf.set(f"{bucket}.{key}", given[name])
    if "aws_endpoint_url" in given:
        is_plain = given["aws_endpoint_url"].startswith("http:")
        spark.conf.set(f"{bucket}.path.style.access", "true")
        spark.conf.set(f"{bucket}.connection.ssl.enabled", str(not is_plain).lower())


def _check_there(spark: SparkSession) -> None:
    java: Any = spark.sparkContext._jvm
    try:
        java.org.apache.spark.util.Utils.classForName(
            "org.apache.hadoop.fs.s3a.S3AFileSystem", True, False
        )
    except Py4JError:
        raise SettingsError(
            "this Spark session has no jars for S3, from which it is to read; make it with "
            'stentor.pipeline.session(settings={"spark.jars": '
            '",".join(stentor.pipeline.spark.s3.s3_jars())})'
        ) from None
