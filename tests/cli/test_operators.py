"""What operators see: logs with time and level, /health, servers that do not answer."""

import json
import logging
import socket
from urllib.request import urlopen

import pytest

from stentor._logs import JsonFormatter
from stentor.cli import screen
from stentor.cli.stream_metrics import published
from stentor.errors import SettingsError, StentorError
from stentor.pipeline.config.file import load
from stentor.pipeline.config.servers import check_servers, naming_servers


@pytest.fixture
def _logs_as_before():
    yield
    screen.set_log_format(screen.LogForm.PLAIN)
    logger = logging.getLogger("stentor")
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)


@pytest.mark.usefixtures("_logs_as_before")
def test_lines_are_json_with_time_and_level_on_request(capsys):
    screen.print_line("plain")
    screen.set_log_format(screen.LogForm.JSON)
    screen.print_line("Running into out; ü")
    with screen.timed_line("Opening"):
        logging.getLogger("stentor.engine").warning("a base was not made: %s", "full")
    plain, *lines = capsys.readouterr().err.splitlines()
    assert plain == "plain"
    said = [json.loads(line) for line in lines]
    assert [one["level"] for one in said] == ["info", "info", "warning"]
    assert said[0]["message"] == "Running into out; ü"
    assert said[2]["logger"] == "stentor.engine"
    assert all(one["time"].endswith("Z") for one in said)
    screen.set_log_format(screen.LogForm.TEXT)
    screen.print_line("again")
    assert " INFO again" in capsys.readouterr().err


def test_an_error_brings_its_traceback():
    try:
        raise ValueError("wrong")
    except ValueError:
        import sys

        record = logging.LogRecord("x", logging.ERROR, "", 1, "it failed", (), sys.exc_info())
    assert "ValueError: wrong" in json.loads(JsonFormatter().format(record))["error"]


def test_a_stream_answers_health_beside_metrics(capsys):
    pytest.importorskip("prometheus_client")
    with published("0"):
        address = capsys.readouterr().err.split("Metrics at ")[1].split("/metrics")[0]
        with urlopen(f"{address}/health") as answer:
            assert json.load(answer) == {"status": "starting", "batches": 0}
        with urlopen(f"{address}/metrics") as answer:
            assert b"stentor_records_total" in answer.read()


def of_kafka(tmp_path, servers):
    file = tmp_path / "stentor.toml"
    file.write_text(
        f'[[source]]\nformat = "kafka"\nkind = "changes"\ntopic = "t"\nservers = "{servers}"\n'
        '[tables]\npath = "out"\n'
    )
    return load(file)


def test_servers_that_do_not_answer_are_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        up = f"127.0.0.1:{server.getsockname()[1]}"
        check_servers(of_kafka(tmp_path, up))
        check_servers(of_kafka(tmp_path, f"127.0.0.1:1, {up}"))
        with (
            pytest.raises(StentorError, match=r"^it broke$"),
            naming_servers(of_kafka(tmp_path, up)),
        ):
            raise StentorError("it broke")
    with pytest.raises(SettingsError, match=f"does not answer at {up}"):
        check_servers(of_kafka(tmp_path, up))
    down = of_kafka(tmp_path, up)
    with pytest.raises(StentorError, match=f"does not answer at {up}"), naming_servers(down):
        raise StentorError("it broke")
