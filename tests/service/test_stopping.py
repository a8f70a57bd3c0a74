"""How servers stop, and how one that cannot start says so."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.servers import PATIENCE, Server


@pytest.mark.parametrize("query", ["", "deliveries=false"])
def test_connections_hear_that_the_server_stops(folder: Path, query: str) -> None:
    with Server(folder, index="scan") as server:
        with connect(server.socket_url(query), compression=None, proxy=None) as socket:
            assert json.loads(socket.recv())["type"] == "hello"
            server.stop()
            with pytest.raises(ConnectionClosed) as ended:
                socket.recv(timeout=PATIENCE)
        assert ended.value.rcvd is not None
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1001, "the server stops")


def serving(folder: Path, port: int) -> list[str]:
    told = ["serve", "--folder", str(folder), "--port", str(port)]
    return [sys.executable, "-m", "stentor", *told]


def test_the_second_owner_of_a_store_is_told_so_in_a_line(folder: Path) -> None:
    with Server(folder, index="scan"):
        found = subprocess.run(
            serving(folder, 0), capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert found.returncode != 0
    assert "Traceback" not in found.stderr
    *_, line = found.stderr.strip().splitlines()
    assert line.startswith("stentor: ")
    assert "service.db" in line


def test_a_reader_that_leaves_its_stream_leaves_nothing_in_the_log(folder: Path) -> None:
    with subprocess.Popen(
        serving(folder, 0), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            url = next(line for line in running.stdout if "ready at" in line).split()[3]
            with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as http:
                for _ in range(3):
                    with http.stream("GET", "/v1/stream") as stream:
                        assert next(stream.iter_lines()).startswith("retry")
                http.get("/v1/stats")
        finally:
            running.terminate()
            _, log = running.communicate(timeout=PATIENCE)
    assert "Task" not in log
    assert "Traceback" not in log
