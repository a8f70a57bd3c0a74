"""`stentor pub` and `stentor sub`: talk to a service from a terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stentor.cli.explain import read_location_option
from stentor.cli.inputs import ANSWER_NO
from stentor.errors import RecordError, ServiceError, SettingsError
from stentor.wire.formats import ReadSettings, objects_of
from stentor.wire.json_text import from_json, to_json

if TYPE_CHECKING:
    from stentor.client import Client

UrlOption = Annotated[
    str, typer.Option(envvar="STENTOR_URL", help="Where the service is; also `STENTOR_URL`.")
]
KeyOption = Annotated[
    str | None, typer.Option(envvar="STENTOR_KEY", help="An API key or token; also `STENTOR_KEY`.")
]
TimeoutOption = Annotated[
    float, typer.Option(min=0, help="Seconds until a service that does not answer is given up.")
]
_URL = "http://127.0.0.1:8731"
_BATCH = 500


def pub(
    file: Annotated[
        str, typer.Argument(help="A file of events, a JSON value on each line, or `-`.")
    ],
    url: UrlOption = _URL,
    key: KeyOption = None,
    connect_timeout: TimeoutOption = 10.0,
) -> None:
    """Publish the events of FILE, or of the standard input as they come.

    The exit code is 1 where some were refused.

        echo '{"id": "e1", "price": 299, "loc": [151.2, -33.9]}' | stentor pub -
    """
    from stentor.client import Client

    published = refused = 0
    sender = Client(url, key=key, deliveries=False, connect_timeout=connect_timeout)
    with _opened(file) as source, sender as client:
        lines = _numbered(source)
        # From a terminal or a pipe each line goes at once: nobody knows when the next one comes.
        size = 1 if file == "-" else _BATCH
        while batch := list(islice(lines, size)):
            readable = [(number, one) for number, one in batch if not isinstance(one, RecordError)]
            wrong = [(number, str(one)) for number, one in batch if isinstance(one, RecordError)]
            rejected = client.publish([one for _, one in readable])
            wrong += [(readable[one.position][0], str(one.error)) for one in rejected]
            for number, reason in sorted(wrong):
                print(f"line {number}: {reason}", file=sys.stderr)
            refused += len(wrong)
            published += len(batch) - len(wrong)
    print(f"{published:,} published, {refused:,} refused", file=sys.stderr)
    if refused:
        raise typer.Exit(ANSWER_NO)


@contextmanager
def _opened(file: str) -> Iterator[Any]:
    """The bytes of *file*, or of the standard input."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from None


def _numbered(source: Any) -> Iterator[tuple[int, Any]]:
    """The events of *source* with the numbers of their lines; what is no JSON is its error."""
    for number, line in enumerate(source, start=1):
        if not line.strip():
            continue
        try:
            for one in objects_of(from_json(line), ReadSettings(default_op="publish")):
                wrong = RecordError("expected an object")
                yield number, one if isinstance(one, dict) else wrong
        except RecordError as error:
            yield number, error


def sub(
    expression: Annotated[str, typer.Argument(help="What is wanted.")],
    at: Annotated[
        str | None, typer.Option(help="Where the subscriber stands: `longitude,latitude`.")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(help="Keep the subscription under this id when it ends; else it goes."),
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many deliveries.")] = None,
    url: UrlOption = _URL,
    key: KeyOption = None,
    connect_timeout: TimeoutOption = 10.0,
) -> None:
    """Print what matches EXPRESSION as it is published, a JSON line each, until Ctrl-C.

    With `--id` it can be ended and started again: what came meanwhile is printed then.

        stentor sub "price < 300 AND ST_DWithin(loc, here(), 500)" --at 151.2,-33.9
    """
    import secrets

    from stentor.client import Client, ReceivedGap

    name = id or f"sub-{secrets.token_hex(6)}"
    kept = _client_name(name)
    with (
        _ended_by_signals(),
        Client(url, key=key, client=kept, connect_timeout=connect_timeout) as client,
    ):
        try:
            client.subscribe(name, expression, at=read_location_option(at))
            print(f"waiting as {name}", file=sys.stderr, flush=True)
            for printed, one in enumerate(client.deliveries(), start=1):
                if isinstance(one, ReceivedGap):
                    print(f"{one.first} to {one.last} were {one.reason}", file=sys.stderr)
                else:
                    print(to_json(one._asdict()), flush=True)
                client.acknowledge(one.last if isinstance(one, ReceivedGap) else one.seq)
                if count is not None and printed >= count:
                    break
        finally:
            if id is None:
                _forget(client, name, kept)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and a hang-up end what is done within like Ctrl-C; a second one ends at once."""
    wanted = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    numbers = [one for one in wanted if one is not None]

    def end(number: int, frame: object) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_DFL)
        raise KeyboardInterrupt

    older = {one: signal.signal(one, end) for one in numbers}
    try:
        yield
    finally:
        for one, handler in older.items():
            signal.signal(one, handler)


def _forget(client: Client, id: str, name: str) -> None:
    """End the subscription *id*, and the client *name* that was made for it."""
    try:
        client.request("DELETE", f"/v1/clients/{name}")
    except ServiceError as error:
        if error.kind != "not_found":  # it never came to be
            print(f"the subscription {id} is still there: {error}", file=sys.stderr)


def _client_name(id: str) -> str:
    """The client whose deliveries *id* gets: its own, so that others take none of them away."""
    import hashlib

    return f"sub-{hashlib.sha256(id.encode()).hexdigest()[:32]}"
