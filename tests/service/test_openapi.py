"""The OpenAPI document is what the server does: whatever is asked, answers are as it says."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from stentor.service.app import application  # noqa: F401 – its handlers are registered
from stentor.service.openapi import document
from stentor.service.settings import ServeSettings
from tests.support.servers import Server

with warnings.catch_warnings(action="ignore"):
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: Any, value: Any) -> bytes:
    """Lines of JSON."""
    records = value if isinstance(value, list) else [value]
    return b"\n".join(json.dumps(one).encode() for one in records)


CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("openapi")
    limits = {"requests_per_second": 1_000_000}
    with Server(folder, index="scan", limits=limits, remembered_events=100) as server:
        yield schemathesis.openapi.from_url(f"{server.url}/openapi.json")


def operations() -> list[tuple[str, str]]:
    """All but streams, which never end, backups, which would fill the disk, and new keys.

    With the first key everything else would be refused.
    """
    paths = document(ServeSettings())["paths"]
    return [
        (method, path)
        for path, methods in paths.items()
        for method in methods
        if "stream" not in path and "backup" not in path and (method, path) != ("post", "/v1/keys")
    ]


@pytest.mark.parametrize(("method", "path"), operations())
def test_answers_are_as_the_document_says(described: Any, method: str, path: str) -> None:
    operation = described[path][method.upper()]

    @given(case=operation.as_strategy())
    @settings(suppress_health_check=list(HealthCheck), deadline=None)
    def answers(case: Any) -> None:
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        case.call_and_validate(checks=CHECKS, timeout=60)

    answers()
