"""Object stores (S3, Google's, Azure's) through obstore.

A conditional put is the commit. Whatever else than yes or no it answers means that it is not known
what happened: then the object itself is looked at.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from stentor.errors import FolderError
from stentor.pipeline.secrets import without_secrets

#: How often what is not known is looked at and tried again, and the seconds before it.
_TRIES: Final = 5
_PAUSE: Final = 0.2
_CHUNK: Final = 8 << 20
#: How the names of options begin, by scheme.
PREFIXES: Final = {"s3": "aws_", "gs": "google_", "abfss": "azure_"}
#: What lets a store be reached without TLS; it is an option of the connection to obstore.
_PLAIN_HTTP: Final = ("aws_allow_http", "google_allow_http", "azure_allow_http")
#: How long a request that fails is tried again.
_PATIENCE: Final = timedelta(seconds=30)


class ObjectStore:
    """The objects below an *address* such as `s3://bucket/folder`."""

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        """Objects are asked for as *options* say; what they do not say the environment does."""
        import obstore
        from obstore.exceptions import BaseError, UnknownConfigurationKeyError
        from obstore.store import from_url

        self._address = address
        self._objects = obstore
        config = {name: value for name, value in options.items() if name not in _PLAIN_HTTP}
        endpoint = options.get("aws_endpoint_url", os.environ.get("AWS_ENDPOINT_URL", ""))
        allow_http = endpoint.startswith("http:") or any(
            options.get(name, "").lower() == "true" for name in _PLAIN_HTTP
        )
        prefix = PREFIXES[address.partition(":")[0]]
        foreign = [name for name in config if not name.lower().startswith(prefix)]
        if foreign:  # obstore panics
            raise FolderError(f"{address} has options that begin with {prefix}, not {foreign[0]!r}")
        connection: Any = {
            "config": config or None,
            "client_options": {"connect_timeout": "5s", "timeout": "60s", "allow_http": allow_http},
            "retry_config": {"max_retries": 5, "retry_timeout": _PATIENCE},
        }
        try:
            self._store = from_url(address, **connection)
        except UnknownConfigurationKeyError as error:
            raise FolderError(f"{address}: {first_line(error)}; check [storage]") from None
        except (BaseError, OSError, ValueError) as error:
            raise FolderError(f"{address} cannot be used: {first_line(error)}") from error

    def put_if_absent(self, name: str, content: bytes, reached: Callable[[str], None]) -> bool:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        reached("written")
        for attempt in range(_TRIES):
            try:
                self._objects.put(self._store, name, content, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return self._is_mine(name, content)
            except _errors() as error:
                time.sleep(_PAUSE * attempt)
                # Where that is not known it is tried again, and refused if it is there.
                with suppress(FolderError):
                    if self.has(name):
                        return self._is_mine(name, content)
                failure = error
            else:
                reached("linked")
                return True
        with self._explained(name):
            raise failure

    def put(self, name: str, file: Path, *, durable: bool = True) -> None:
        with self._explained(name):
            self._objects.put(self._store, name, file)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        with self._explained(name):
            if stop is not None:
                part = self._objects.get_range(self._store, name, start=start, end=stop)
                return bytes(part)
            whole = self._objects.get(self._store, name).bytes()
            return bytes(whole)[start:]

    def fetch(self, name: str, file: Path) -> None:
        with self._explained(name):
            found = self._objects.get(self._store, name)
            with file.open("xb") as copy:
                for chunk in found.stream(min_chunk_size=_CHUNK):
                    copy.write(chunk)
                size = copy.tell()
        if size != found.meta["size"]:
            raise FolderError(
                f"{self._address}/{name} broke off after {size:,} of {found.meta['size']:,} bytes; "
                "check the network and start again"
            )

    def has(self, name: str) -> bool:
        with self._explained(name):
            try:
                self._objects.head(self._store, name)
            except FileNotFoundError:
                return False
        return True

    def names(self, prefix: str) -> list[str]:
        with self._explained(prefix):
            pages = self._objects.list(self._store, prefix or None)
            return sorted(one["path"] for page in pages for one in page)

    def delete(self, names: Iterable[str]) -> None:
        every = list(names)
        with self._explained(every[0] if every else ""):
            for start in range(0, len(every), 1000):
                try:
                    self._objects.delete(self._store, every[start : start + 1000])
                except FileNotFoundError:  # some stores tell; the others are to go all the same
                    self._delete_singly(every[start : start + 1000])

    def remove_abandoned(self) -> None:
        """Nothing: a put that was killed leaves no object."""

    def _delete_singly(self, names: list[str]) -> None:
        for name in names:
            try:
                self._objects.delete(self._store, name)
            except FileNotFoundError:
                continue

    def _is_mine(self, name: str, content: bytes) -> bool:
        """Whether the object is what this process put: an answer may be lost on its way."""
        return self.read(name) == content

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:  # pages about requests follow in what it says
            raise FileNotFoundError(f"{self._address}/{name} is missing") from None
        except _errors() as error:
            raise FolderError(
                f"{self._address}/{name}: {first_line(error)}; check that the store answers, and "
                "what [storage] or the environment say of its address and keys"
            ) from error


def _errors() -> tuple[type[Exception], ...]:
    """What obstore raises."""
    from obstore.exceptions import BaseError

    return BaseError, OSError


def first_line(error: BaseException) -> str:
    """What *error* says first, without secrets; pages about its causes follow."""
    return without_secrets(str(error).strip().partition("\n")[0])
