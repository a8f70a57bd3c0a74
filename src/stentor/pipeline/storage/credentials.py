"""How a store is reached: as the user says, as Spark's session says, as the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import ConfigParser, Error
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stentor.pipeline.secrets import resolved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HADOOP: Final = "spark.hadoop."
#: What Hadoop's settings are called for obstore.
_KEYS: Final = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
    "fs.s3a.endpoint": "aws_endpoint_url",
    "fs.s3a.endpoint.region": "aws_region",
}


def storage_options(spark: SparkSession | None, given: Mapping[str, str]) -> dict[str, str]:
    """The options of a stream's store: those *given*, then those of a session's own `s3a`.

    What neither says the environment says, in every process for itself; where a profile of AWS is
    named there, its keys count.
    """
    session = {} if spark is None else _of_session(spark)
    found = {**_profile(), **session, **resolved(given)}
    endpoint = found.get("aws_endpoint_url", os.environ.get("AWS_ENDPOINT_URL", ""))
    if endpoint.startswith("http:"):
        found.setdefault("aws_allow_http", "true")
    return found


def _of_session(spark: SparkSession) -> dict[str, str]:
    found = {}
    for hadoop, name in _KEYS.items():
        value = spark.conf.get(_HADOOP + hadoop, "")
        if value:
            found[name] = value
    endpoint = found.get("aws_endpoint_url", "")
    if endpoint and "://" not in endpoint:
        found["aws_endpoint_url"] = f"https://{endpoint}"
    return found


def _profile() -> dict[str, str]:
    """The keys of the profile that AWS_PROFILE names, where no keys are in the environment."""
    profile = os.environ.get("AWS_PROFILE", "")
    if not profile or "AWS_ACCESS_KEY_ID" in os.environ:
        return {}
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    parser = ConfigParser(interpolation=None)
    try:
        parser.read(Path(named).expanduser(), "utf-8")
        section = parser[profile]
    except (Error, KeyError, OSError, RuntimeError):
        return {}
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    return {name: section[name] for name in names if name in section}
