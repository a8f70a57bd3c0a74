"""What `stentor serve` can be told; every mistake is said at once."""

from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stentor.cli.app import app
from stentor.errors import SettingsError
from stentor.service.settings import ServeSettings, read_settings

WRONG = """
port = "high"
brocker = "x"
host = "0.0.0.0"
[queue]
policy = "dorp"
time_to_live = "soon"
[limits]
body = 0
[strange]
[schema]
price = "nummer"
"""
RIGHT = """
port = 9000
folder = "data"
shared_events = true
[queue]
deliveries = 5
policy = "hold"
time_to_live = "2 hours"
[webhooks]
allow = ["*.example.org"]
"""


def test_every_mistake_is_said(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(WRONG)
    with pytest.raises(SettingsError) as raised:
        read_settings(file)
    told = str(raised.value)
    assert "8 mistakes" in told
    for piece in (
        "port: expected a port",
        "did you mean broker?",
        "[queue], policy: expected one of drop, hold, disconnect",
        "[queue], time_to_live: expected a span",
        "[limits], body: expected a whole number",
        "strange: there is no such key",
        "host: 0.0.0.0 is reached by other machines",
        "[schema], price: expected one of",
    ):
        assert piece in told


def test_a_file_is_read_and_what_it_leaves_out_has_its_default(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(RIGHT)
    found = read_settings(file)
    assert (found.port, found.folder, found.shared_events) == (9000, tmp_path / "data", True)
    assert (found.queue.policy, found.queue.time_to_live) == ("hold", timedelta(hours=2))
    assert found.limits == ServeSettings().limits
    assert found.webhooks.allow == ("*.example.org",)


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ('host = "0.0.0.0"', "keys would travel in the clear"),
        ('[tls]\ncertificate = "a.pem"', "go together"),
        ('[tls]\ncertificate = "a.pem"\nkey = "b.pem"', "there is no file"),
        ('[jwt]\nsecret_file = "none"', "there is no file"),
        ('[jwt]\nalgorithms = ["none"]', "is none"),
        ('index = "unheard"', "index:"),
        ("port = ", "is no TOML"),
    ],
)
def test_what_cannot_be_meant_is_said(tmp_path: Path, text: str, piece: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        read_settings(file)
    assert piece in str(raised.value)


def test_check_serves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(RIGHT)
    found = CliRunner().invoke(app, ["serve", str(file), "--check", "--port", "9001"])
    assert found.exit_code == 0
    assert "no mistakes found; it would serve http://127.0.0.1:9001" in found.output
    assert not (tmp_path / "data").exists()
