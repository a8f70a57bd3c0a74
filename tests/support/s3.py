"""A real S3 server on loopback, of the package ministack: its conditional puts are honest."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.servers import PATIENCE, free_port

BUCKET = "stentor"


class S3Server:
    """One server over a folder; it may be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        httpx.put(f"{self.url}/{BUCKET}", trust_env=False, timeout=PATIENCE).raise_for_status()

    @property
    def options(self) -> dict[str, str]:
        """How it is reached, by obstore's names."""
        return {
            "aws_endpoint_url": self.url,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "testtest",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same in the environment of a process."""
        return {name.upper(): value for name, value in self.options.items()}

    def start(self) -> None:
        bind = f"127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "hypercorn",
                "--workers",
                "0",
                "--bind",
                bind,
                "ministack.app:app",
            ],
            env={**os.environ, "S3_PERSIST": "1", "S3_DATA_DIR": str(self._folder)},
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                httpx.get(self.url, trust_env=False, timeout=PATIENCE)
            except httpx.TransportError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError("the S3 server is ready in time")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process = None

    @contextmanager
    def stopped_at_the_end(self) -> Iterator["S3Server"]:
        try:
            yield self
        finally:
            if self._process is not None:
                self.kill()
