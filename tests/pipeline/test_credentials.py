"""How a store is reached: what the user, the session and the environment say, each for its kind."""

import pytest

from stentor.pipeline.storage.credentials import storage_options
from stentor.pipeline.storage.folder import stream_folder

S3, GS, HDFS = "s3a://bucket/alerts", "gs://bucket/alerts", "hdfs://127.0.0.1:9/alerts"
ABFSS = "abfss://box@account.dfs.core.windows.net/alerts"


class Conf(dict):
    """The settings of a session."""

    conf = property(lambda self: self)


SESSION = Conf(
    {
        "spark.hadoop.fs.s3a.access.key": "everywhere",
        "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.endpoint": "minio:9000",
        "spark.hadoop.fs.s3a.bucket.own.access.key": "own",
        "spark.hadoop.fs.azure.account.key.account.dfs.core.windows.net": "a2V5",
        "spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/keys/google.json",
    }
)


@pytest.fixture(autouse=True)
def profile(tmp_path, monkeypatch):
    """A profile of AWS, as a user has it whatever store a stream is in."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    file.write_text("[work]\naws_access_key_id = p\naws_secret_access_key = q\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))


def test_a_store_gets_the_keys_of_its_own_kind_and_no_others(tmp_path):
    given = {"aws_region": "x", "google_bucket": "bucket", "dfs.replication": "2"}
    assert storage_options(None, given, HDFS) == {"dfs.replication": "2"}
    assert storage_options(SESSION, {}, HDFS) == {}
    assert storage_options(SESSION, {}, tmp_path) == {}
    assert storage_options(None, {"aws_region": "x"}, GS) == {}
    assert storage_options(SESSION, {}, GS) == {"google_service_account": "/keys/google.json"}
    assert storage_options(SESSION, {}, ABFSS) == {"azure_storage_account_key": "a2V5"}
    assert storage_options(None, {"google_bucket": "x"}, S3) == {
        "aws_access_key_id": "p",
        "aws_secret_access_key": "q",
    }


def test_what_the_user_says_counts_before_the_session_and_that_before_the_profile():
    found = storage_options(SESSION, {"aws_secret_access_key": "mine"}, S3)
    assert found == {
        "aws_access_key_id": "everywhere",
        "aws_secret_access_key": "mine",
        "aws_endpoint_url": "https://minio:9000",
    }
    assert storage_options(SESSION, {}, "s3://own/alerts")["aws_access_key_id"] == "own"


def test_a_store_of_azure_opens_in_a_session_that_has_keys_of_another():
    folder = stream_folder(ABFSS, options=storage_options(SESSION, {"aws_region": "x"}, ABFSS))
    assert folder.store is not None
