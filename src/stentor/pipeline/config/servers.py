"""The servers of Kafka that a stream needs: whether they answer, and which of them do not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stentor.errors import SettingsError, StentorError
from stentor.pipeline.config.file import StreamConfig

#: Seconds that a server is given to answer.
_TIMEOUT: Final = 5.0


def check_servers(config: StreamConfig) -> None:
    """A SettingsError where none of a source's or sink's servers answers, which it names.

    Cost: a connection to one server of each; some seconds for each that does not answer.
    """
    down = silent_servers(config)
    if down:
        raise SettingsError(
            f"Kafka does not answer at {', '.join(down)}; start it, or correct `servers`"
        )


@contextmanager
def naming_servers(config: StreamConfig) -> Iterator[None]:
    """Say of what fails within which servers do not answer, if it is because of them."""
    try:
        yield
    except StentorError as error:
        down = silent_servers(config) if config.uses_kafka else []
        if not down:
            raise
        raise StentorError(
            f"Kafka does not answer at {', '.join(down)}, and the stream has stopped; what is "
            f"committed stays, and started again it goes on there ({error})"
        ) from error


def silent_servers(config: StreamConfig) -> list[str]:
    """The servers of those sources and sinks of which none answers."""
    several = [one.servers for one in config.sources if one.servers]
    if config.kafka is not None:
        several.append(config.kafka.servers)
    down: list[str] = []
    for servers in dict.fromkeys(several):
        named = [server.strip() for server in servers.split(",") if server.strip()]
        if named and not any(map(_answers, named)):
            down += named
    return down


def _answers(server: str) -> bool:
    host, _, port = server.rpartition(":")
    if not port.isdecimal():
        return True  # which others refuse
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT):
            return True
    except (OSError, ValueError, OverflowError):
        return False
