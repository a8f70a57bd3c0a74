from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.servers import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("service"), index="scan") as one:
        yield one


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "service"
