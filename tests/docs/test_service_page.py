"""What pages say of servers: routes, settings, and commands that speak to one that runs."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
from typer.main import get_command

import stentor.service.app  # its handlers are what the document describes
from stentor.cli.app import app
from stentor.service.openapi import document
from stentor.service.settings import ServeSettings
from tests.docs.documents import ROOT, Block, blocks, enter, table
from tests.support.servers import PATIENCE, Server, free_port

PAGE = (ROOT / "docs" / "service.md").read_text("utf-8")
ROUTE = re.compile(r"\b(GET|PUT|POST|DELETE|PATCH)`?,? `?(/[\w/{}.-]+)")
SERVERS = [block for block in blocks("sh") if block.name == "server"]
APPLICATIONS = [block for block in blocks("sh") if block.name == "application"]


def test_the_page_has_the_calls_that_the_service_answers() -> None:
    assert stentor.service.app
    paths = document(ServeSettings())["paths"]
    answered = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert {" ".join(found) for found in ROUTE.findall(PAGE)} == answered


def test_the_page_has_every_setting_of_the_service() -> None:
    names = {name for keys, _, _ in table("docs/service.md", "key") for name in keys.split(", ")}
    assert {name.strip("[]") for name in names} == {
        one.encode_name for one in msgspec.structs.fields(ServeSettings)
    }


def test_the_page_has_every_key_of_every_section() -> None:
    words = set(re.findall(r"\w+", PAGE))
    for field in msgspec.structs.fields(ServeSettings):
        inside = [field.type, *getattr(field.type, "__args__", ())]
        for kind in inside:
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                keys = {one.encode_name for one in msgspec.structs.fields(kind)}
                assert keys <= words, field.name


@pytest.mark.parametrize("block", SERVERS, ids=str)
def test_commands_speak_to_a_server_as_the_page_says(block: Block, tmp_path: Path) -> None:
    enter(tmp_path)
    listening: list[subprocess.Popen[str]] = []
    with Server(tmp_path / "service", index="scan") as server:
        environment = os.environ | {"STENTOR_URL": server.url}
        for line in block.lines:
            program, name, *arguments = shlex.split(line.text, comments=True)
            assert program == "stentor", line
            if name == "serve":
                get_command(app).commands[name].make_context(name, arguments)  # type: ignore[attr-defined]
                continue
            command = [sys.executable, "-m", "stentor", name, *arguments]
            if name == "sub":  # it prints until it is stopped: here after a delivery
                command += ["--count", "1"]
                heard = subprocess.Popen(
                    command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
                )
                listening.append(heard)
                until_subscribed(server, len(listening))
            else:
                subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=PATIENCE)
        assert listening
        for one in listening:
            printed, _ = one.communicate(timeout=PATIENCE)
            assert one.returncode == 0
            assert json.loads(printed)["event"]["id"] == "e1"


def until_subscribed(server: Server, count: int) -> None:
    with server.http() as http:
        deadline = time.monotonic() + PATIENCE
        while http.get("/v1/stats").json()["subscriptions"] < count:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("block", APPLICATIONS, ids=str)
def test_an_application_answers_calls_as_the_page_says(block: Block, tmp_path: Path) -> None:
    starting, *calls = block.lines
    with started(starting.text, ROOT / "docs" / "tutorials", tmp_path) as url:
        answers = [called(line.text, url) for line in calls]
    assert "".join(f"{one}\n" for one in answers) == block.output


@contextmanager
def started(line: str, folder: Path, kept: Path) -> Iterator[str]:
    """The application that *line* starts in *folder*, on a port of its own; what it keeps is in
    *kept*.
    """
    words = shlex.split(line, comments=True)
    variables = dict(word.split("=") for word in words if re.match(r"[A-Z_]+=", word))
    variables = {name: str(kept / value) for name, value in variables.items()}
    program, *arguments = words[len(variables) :]
    assert program == "uvicorn"
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", *arguments, "--port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | variables | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                httpx.get(f"{url}/docs", trust_env=False)
                break
            except httpx.TransportError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE)


def called(line: str, url: str) -> str:
    """What the application at *url* answers to *line*, a call of curl to localhost:8000."""
    program, *arguments = shlex.split(line, comments=True)
    assert program == "curl"
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("-X", default="GET")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    parser.add_argument("url")
    asked = parser.parse_args(arguments)
    headers = dict(header.split(": ", 1) for header in asked.H)
    target = asked.url.replace("localhost:8000", url)
    answer = httpx.request(
        asked.X, target, headers=headers, content=asked.d, timeout=PATIENCE, trust_env=False
    )
    assert answer.is_success, answer.text
    return answer.text
