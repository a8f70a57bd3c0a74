"""How a store is reached: as the user says, as Spark's session says, as the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import ConfigParser, Error
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stentor.pipeline.secrets import resolved
from stentor.pipeline.storage.folder import ALIASES
from stentor.pipeline.storage.objects import PREFIXES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HADOOP: Final = "spark.hadoop."
#: What the settings of `fs.s3a` are called for obstore.
_KEYS: Final = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint": "aws_endpoint_url",
    "endpoint.region": "aws_region",
}


def storage_options(
    spark: SparkSession | None, given: Mapping[str, str], address: object
) -> dict[str, str]:
    """The options of the store of *address*: those *given*, then those of a session's own Hadoop.

    What neither says the environment says, in every process for itself; where a profile of AWS is
    named there, its keys count. Those for stores of another kind are left out.
    """
    scheme, _, rest = str(address).partition("://")
    scheme = ALIASES.get(scheme.lower(), scheme.lower())
    foreign = [prefix for of, prefix in PREFIXES.items() if of != scheme]
    own = {n: v for n, v in resolved(given).items() if not n.lower().startswith(tuple(foreign))}
    if scheme != "s3":
        return {**({} if spark is None else _of_hadoop(spark, scheme, rest)), **own}
    bucket = rest.partition("/")[0]
    found = {**_profile(), **({} if spark is None else _of_s3a(spark, bucket)), **own}
    endpoint = found.get("aws_endpoint_url", os.environ.get("AWS_ENDPOINT_URL", ""))
    if endpoint.startswith("http:"):
        found.setdefault("aws_allow_http", "true")
    return found


def _of_s3a(spark: SparkSession, bucket: str) -> dict[str, str]:
    """What the session says of all buckets, or of this one."""
    found = {}
    for key, name in _KEYS.items():
        everywhere = spark.conf.get(f"{_HADOOP}fs.s3a.{key}", "")
        value = spark.conf.get(f"{_HADOOP}fs.s3a.bucket.{bucket}.{key}", "") or everywhere
        if value:
            found[name] = value
    endpoint = found.get("aws_endpoint_url", "")
    if endpoint and "://" not in endpoint:
        found["aws_endpoint_url"] = f"https://{endpoint}"
    return found


def _of_hadoop(spark: SparkSession, scheme: str, rest: str) -> dict[str, str]:
    """The key of an account, where the session has one."""
    host = rest.partition("/")[0].rpartition("@")[2]
    names = {
        "gs": ("fs.gs.auth.service.account.json.keyfile", "google_service_account"),
        "abfss": (f"fs.azure.account.key.{host}", "azure_storage_account_key"),
    }
    key, name = names.get(scheme, ("", ""))
    value = spark.conf.get(_HADOOP + key, "") if key else ""
    return {name: value} if value else {}


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
