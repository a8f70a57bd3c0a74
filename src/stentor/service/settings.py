"""What `stentor serve` can be told: one TOML file, every mistake in it said at once."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from stentor.broker.policies import policy_of
from stentor.errors import SettingsError, StentorError
from stentor.index.catalog import index_class
from stentor.model import Kind, Schema
from stentor.pipeline.config.reader import Count, Span, Text, Texts, TomlSection, Truth

#: The owner of everybody where no key is configured.
LOCAL: Final = "local"
#: The client of a subscription that names none.
DEFAULT_CLIENT: Final = "default"
SCOPES: Final = ("publish", "subscribe", "link", "admin")
PORT: Final = 8731
FOLDER: Final = Path("stentor-service")
#: Where a page asks for the user's own map.
MAP: Final = "map.pmtiles"
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

Port = Annotated[int, Meta(ge=0, le=65_535, extra={"expected": "a port, 0 to 65535"})]
Policy = Literal["drop", "hold", "disconnect"]


class QueueSettings(msgspec.Struct, frozen=True):
    """`[queue]`: what a client is kept that does not acknowledge."""

    deliveries: Count = 10_000
    bytes: Count = 64_000_000
    policy: Policy = "drop"
    time_to_live: Span = timedelta(days=7)


class LimitSettings(msgspec.Struct, frozen=True):
    """`[limits]`: what one request, connection or owner may cost."""

    body: Count = 8_000_000
    frame: Count = 4_000_000
    connections: Count = 20_000
    connections_per_owner: Count = 12_000
    subscriptions_per_owner: Count = 1_000_000
    records_per_second: Count = 100_000
    requests_per_second: Count = 20_000
    inbox: Count = 100_000
    in_flight: Count = 10_000


class TlsSettings(msgspec.Struct, frozen=True):
    """`[tls]`: a certificate and its key, both as PEM files."""

    certificate: Text | None = None
    key: Text | None = None


class JwtSettings(msgspec.Struct, frozen=True):
    """`[jwt]`: tokens of somebody else, with the claims `owner` (or `sub`) and `scope`."""

    secret_file: Text | None = None
    public_key_file: Text | None = None
    algorithms: Texts = ("HS256",)
    audience: Text | None = None
    issuer: Text | None = None


class WebhookSettings(msgspec.Struct, frozen=True):
    """`[webhooks]`: where deliveries may be sent to, and how often it is tried."""

    allow: Texts = ()
    attempts: Count = 8
    first_wait: Span = timedelta(seconds=1)
    timeout: Span = timedelta(seconds=10)
    dead_letters: Count = 10_000


class LinkSettings(msgspec.Struct, frozen=True):
    """`[[links]]`: a broker that this one connects to; the other one only lets it in."""

    url: Text = ""
    broker: Text | None = None
    key_file: Text | None = None
    ca_file: Text | None = None


class LinkQueueSettings(msgspec.Struct, frozen=True):
    """`[link_queue]`: what may wait for a neighbour before senders are held."""

    bytes: Count = 256_000_000
    messages: Count = 1_000_000


class ServeSettings(msgspec.Struct, frozen=True):
    """All of it; the defaults are those of `stentor serve` without a file."""

    host: Text = "127.0.0.1"
    port: Port = PORT
    folder: Path = FOLDER
    pipeline: Path | None = None
    broker: Text = "local"
    index: Text = "auto"
    policy: Text = "covering"
    hop_limit: Count = 32
    origins: Texts = ()
    hosts: Texts = ()
    shared_events: Truth = False
    remembered_events: Count = 10_000
    remembered_minutes: Count = 10
    console: Truth = True
    map: Text | None = None
    log: Literal["text", "json"] = "text"
    schema: dict[str, str] = {}
    queue: QueueSettings = QueueSettings()
    limits: LimitSettings = LimitSettings()
    tls: TlsSettings = TlsSettings()
    jwt: JwtSettings = JwtSettings()
    webhooks: WebhookSettings = WebhookSettings()
    link_queue: LinkQueueSettings = LinkQueueSettings()
    links: tuple[LinkSettings, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def has_jwt(self) -> bool:
        """Whether tokens of somebody else are taken."""
        return bool(self.jwt.secret_file or self.jwt.public_key_file)

    @property
    def url(self) -> str:
        """Where it is reached."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls.certificate else 'http'}://{host}:{self.port}"


_TABLES: Final[dict[str, type[msgspec.Struct]]] = {
    "queue": QueueSettings,
    "limits": LimitSettings,
    "tls": TlsSettings,
    "jwt": JwtSettings,
    "webhooks": WebhookSettings,
    "link_queue": LinkQueueSettings,
}
#: Read one by one below; all other keys are read as they are.
_PLAIN: Final = [
    one.name
    for one in msgspec.structs.fields(ServeSettings)
    if one.name not in (*_TABLES, "folder", "pipeline", "links", "schema")
]


def read_settings(path: Path) -> ServeSettings:
    """What the file says; one SettingsError lists all that is wrong with it."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None
    mistakes: list[str] = []
    settings = _read(TomlSection("", raw, mistakes), path.parent)
    known = [one.partition(":")[0].partition(",")[0] for one in mistakes]
    found = problems(settings, path.parent)
    mistakes += [one for one in found if not one.startswith(tuple(known))]
    if mistakes:
        count = f"{len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}"
        raise SettingsError(f"{path}: {count}\n" + "\n".join(f"  {one}" for one in mistakes))
    return settings


def _read(top: TomlSection, beside: Path) -> ServeSettings:
    kinds = {one.name: one.type for one in msgspec.structs.fields(ServeSettings)}
    found: dict[str, Any] = {name: top.get(name, kinds[name]) for name in _PLAIN}
    folder = top.folder("folder", beside)
    found["pipeline"] = top.folder("pipeline", beside)
    found["folder"] = beside / FOLDER if folder is None else folder
    for name, table in _TABLES.items():
        section = top.inner(name, f"[{name}]")
        found[name] = section.read(table)
        section.close()
    found["links"] = _links(top)
    found["schema"] = (
        top.inner("schema", "[schema]").kinds(tuple(Kind)) if top.has("schema") else None
    )
    top.close()
    return ServeSettings(**{name: value for name, value in found.items() if value is not None})


def _links(top: TomlSection) -> tuple[LinkSettings, ...]:
    tables = top.any("links")
    if tables is None:
        return ()
    if not isinstance(tables, list):
        top.add_mistake("[[links]]", "write it with two brackets: there may be several")
        return ()
    found = []
    for number, table in enumerate(tables, 1):
        section = top.at(f"[[links]] {number}", table)
        section.require("url", "the other broker's address, like wss://east.example.org:8731")
        found.append(section.read(LinkSettings))
        section.close()
    return tuple(found)


def _link_problems(settings: ServeSettings, beside: Path) -> list[str]:
    found = []
    urls = [one.url for one in settings.links]
    for number, link in enumerate(settings.links, 1):
        where, parts = f"[[links]] {number}", urlsplit(link.url)
        if parts.scheme not in ("ws", "wss", "http", "https") or not parts.hostname:
            found.append(f"{where}, url: expected wss://host:port, got {link.url!r}")
            continue
        if urls.index(link.url) < number - 1:
            found.append(f"{where}, url: {link.url} stands twice")
        if parts.scheme in ("ws", "http") and not is_loopback(parts.hostname):
            found.append(
                f"{where}, url: {link.url} would carry keys in the clear; give wss://, or a tunnel "
                "that ends on 127.0.0.1"
            )
        if link.broker is not None and not NAME.fullmatch(link.broker):
            found.append(f"{where}, broker: expected 1 to 64 letters, digits, '.', '_' or '-'")
        if link.broker == settings.broker:
            found.append(f"{where}, broker: {link.broker!r} is this broker itself")
        for key, name in (("key_file", link.key_file), ("ca_file", link.ca_file)):
            if name is not None and not (beside / name).is_file():
                found.append(f"{where}, {key}: there is no file {beside / name}")
    return found


def is_loopback(host: str) -> bool:
    """Whether *host* is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def problems(settings: ServeSettings, beside: Path) -> list[str]:
    """What is wrong with settings that are each fine by themselves."""
    found = []
    if not NAME.fullmatch(settings.broker):
        found.append("broker: expected 1 to 64 letters, digits, '.', '_' or '-'")
    try:
        index_class(settings.index)
    except StentorError as error:
        found.append(f"index: {error}")
    try:
        policy_of(settings.policy)(Schema(), None)
    except StentorError as error:
        found.append(f"policy: {error}")
    found += _link_problems(settings, beside)
    if settings.pipeline is not None and settings.links:
        found.append("[[links]]: the door of a stream has no links; the stream matches for all")
    tls = settings.tls
    if bool(tls.certificate) != bool(tls.key):
        found.append("[tls]: a certificate and its key go together; give both")
    if settings.map is not None and not settings.map.endswith(".pmtiles"):
        found.append("map: expected a file of vector tiles, like city.pmtiles")
    files = {
        "map": settings.map,
        "[tls], certificate": tls.certificate,
        "[tls], key": tls.key,
        "[jwt], secret_file": settings.jwt.secret_file,
        "[jwt], public_key_file": settings.jwt.public_key_file,
    }
    for key, name in files.items():
        if name is not None and not (beside / name).is_file():
            found.append(f"{key}: there is no file {beside / name}")
    if settings.jwt.secret_file and settings.jwt.public_key_file:
        found.append("[jwt]: give secret_file or public_key_file, not both")
    wrong = [one for one in settings.jwt.algorithms if not re.fullmatch(r"(HS|RS|ES|PS)\d{3}", one)]
    if wrong:
        found.append(f"[jwt], algorithms: {wrong[0]!r} is none; there are HS256, RS256, ES256 …")
    if not settings.is_loopback and not tls.certificate:
        found.append(
            f"host: {settings.host} is reached by other machines, and keys would travel in the "
            "clear; give [tls], or bind 127.0.0.1 behind a proxy that has it"
        )
    return found


def absolute(settings: ServeSettings, beside: Path) -> ServeSettings:
    """*settings* whose files are found from anywhere."""

    def path(name: str | None) -> str | None:
        return None if name is None else str(beside / name)

    tls = msgspec.structs.replace(
        settings.tls, certificate=path(settings.tls.certificate), key=path(settings.tls.key)
    )
    jwt = msgspec.structs.replace(
        settings.jwt,
        secret_file=path(settings.jwt.secret_file),
        public_key_file=path(settings.jwt.public_key_file),
    )
    links = tuple(
        msgspec.structs.replace(one, key_file=path(one.key_file), ca_file=path(one.ca_file))
        for one in settings.links
    )
    return msgspec.structs.replace(settings, map=path(settings.map), tls=tls, jwt=jwt, links=links)
