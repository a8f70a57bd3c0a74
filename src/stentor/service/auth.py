"""Who asks, and what they may: API keys, tokens of somebody else, tickets for browsers.

Keys are 256 random bits, of which the folder has a hash only: `keys.json`, readable by its user.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from stentor import _files
from stentor.errors import SettingsError
from stentor.service.refusals import RefusedError
from stentor.service.settings import LOCAL, NAME, SCOPES, JwtSettings, ServeSettings

KEYS_FILE: Final = "keys.json"
_TICKET_SECONDS: Final = 30.0
_MOST_TICKETS: Final = 100_000
_MOST_TOKEN: Final = 8_192
#: Seconds between two looks at the file of keys: a key that was revoked is refused after that.
_LOOK: Final = 1.0
#: Needed for a call: some scope, whichever.
ANY: Final = "any"


class Principal(NamedTuple):
    """An owner, and what it may do here: as long as its key is there and its token holds."""

    owner: str
    scopes: frozenset[str]
    key: str = ""
    ends: float = math.inf

    def need(self, scope: str) -> None:
        """Refuse who lacks *scope*; `admin` has all, and whoever has one has ANY."""
        if scope == ANY and self.scopes:
            return
        if scope not in self.scopes and "admin" not in self.scopes:
            raise RefusedError(403, "forbidden", f"this needs the scope {scope!r}")

    @property
    def record_scopes(self) -> frozenset[str]:
        """What its records may do."""
        return frozenset(SCOPES) if "admin" in self.scopes else self.scopes


EVERYTHING: Final = Principal(LOCAL, frozenset(SCOPES))


class ApiKey(msgspec.Struct, frozen=True):
    """What is kept of a key."""

    id: str
    hash: str
    owner: str
    scopes: tuple[str, ...]
    created: float
    note: str = ""


class Keys:
    """The keys of a folder; whoever changes the file changes who may."""

    def __init__(self, folder: Path) -> None:
        self._path = Path(folder) / KEYS_FILE
        self._keys: dict[str, ApiKey] = {}
        self._stamp: tuple[int, int] | None = None
        self._looked = -_LOOK
        self.refresh(force=True)

    def refresh(self, *, force: bool = False) -> None:
        """Read the file again where it has changed."""
        now = time.monotonic()
        if not force and now - self._looked < _LOOK:
            return
        self._looked = now
        try:
            status = self._path.stat()
            stamp = status.st_mtime_ns, status.st_size
            if stamp == self._stamp:
                return
            found = msgspec.json.decode(self._path.read_bytes() or b"[]", type=list[ApiKey])
        except FileNotFoundError:
            found, stamp = [], None
        except (OSError, msgspec.MsgspecError) as error:
            raise SettingsError(f"{self._path} cannot be used: {error}") from None
        self._keys, self._stamp = {one.id: one for one in found}, stamp

    @property
    def is_configured(self) -> bool:
        """Whether a key was ever made here: who revokes the last one does not open the door."""
        return self._stamp is not None

    def all(self) -> list[ApiKey]:
        """What is kept, by creation."""
        return sorted(self._keys.values(), key=lambda one: one.created)

    def add(self, owner: str, scopes: Iterable[str], note: str = "") -> str:
        """A new key of *owner*: what is given here is shown once, and kept nowhere."""
        chosen = tuple(dict.fromkeys(scopes))
        if not NAME.fullmatch(owner):
            raise SettingsError("an owner has 1 to 64 letters, digits, '.', '_' or '-'")
        if not chosen or not set(chosen) <= set(SCOPES):
            raise SettingsError(f"scopes are one or more of {', '.join(SCOPES)}")
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        kept = ApiKey(id, _hash(secret), owner, chosen, round(time.time(), 3), note[:200])
        self._write([*self._keys.values(), kept])
        return f"stk_{id}_{secret}"

    def revoke(self, id: str) -> bool:
        """Whether there was such a key; now there is none."""
        if id not in self._keys:
            return False
        self._write([one for one in self._keys.values() if one.id != id])
        return True

    def _write(self, keys: list[ApiKey]) -> None:
        with _files.explain_os_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _files.replace(self._path, msgspec.json.format(msgspec.json.encode(keys)))
        self.refresh(force=True)

    def find(self, key: str) -> Principal | None:
        """Whose *key* it is; None where it is nobody's."""
        self.refresh()
        parts = key.split("_", 2)
        known = self._keys.get(parts[1]) if len(parts) == 3 and parts[0] == "stk" else None
        if known is None or not hmac.compare_digest(known.hash, _hash(parts[2])):
            return None
        return Principal(known.owner, frozenset(known.scopes), known.id)

    def has(self, id: str) -> bool:
        """Whether there is a key of this id: asked of connections that were let in with it."""
        self.refresh()
        return id in self._keys


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Tickets:
    """Tickets that open one connection each, for browsers: their sockets have no headers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: dict[str, tuple[Principal, float]] = {}

    def issue(self, principal: Principal) -> dict[str, Any]:
        """A ticket of *principal*."""
        now = self._clock()
        for ticket in [one for one, (_, end) in self._tickets.items() if end <= now]:
            del self._tickets[ticket]
        if len(self._tickets) >= _MOST_TICKETS:
            raise RefusedError(429, "too_many", "too many tickets wait to be used", retry_after=30)
        ticket = secrets.token_urlsafe(24)
        self._tickets[ticket] = principal, now + _TICKET_SECONDS
        return {"ticket": ticket, "seconds": _TICKET_SECONDS}

    def take(self, ticket: str) -> Principal | None:
        """Whose *ticket* it is; nobody's from now on."""
        principal, end = self._tickets.pop(ticket, (None, 0.0))
        return principal if end > self._clock() else None


class Gate:
    """Finds who asks: by header, by ticket, or, where no key is configured, by nothing."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self.keys = Keys(settings.folder)
        self.tickets = Tickets()
        self._jwt = _JwtReader(settings.jwt) if settings.has_jwt else None
        if not settings.is_loopback and not self.is_closed:
            raise SettingsError(
                f"{settings.host} is reached by other machines, and no key is configured: make one "
                f"with `stentor key add OWNER --folder {settings.folder}`, or bind 127.0.0.1"
            )

    @property
    def is_closed(self) -> bool:
        """Whether one has to say who one is."""
        return self._jwt is not None or self.keys.is_configured

    def admit(self, authorization: str | None, ticket: str | None = None) -> Principal:
        """Who asks; a RefusedError where nobody knows them."""
        self.keys.refresh()
        if ticket is not None:
            found = self.tickets.take(ticket)
            if found is None:
                raise RefusedError(401, "unauthorised", "the ticket was used or is too old")
            return found
        if authorization is None:
            if self.is_closed:
                raise RefusedError(401, "unauthorised", "give `Authorization: Bearer KEY`")
            return EVERYTHING
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token or len(token) > _MOST_TOKEN:
            raise RefusedError(401, "unauthorised", "expected `Authorization: Bearer KEY`")
        found = self.keys.find(token.strip())
        if found is None and self._jwt is not None:
            found = self._jwt.find(token.strip())
        if found is None:
            raise RefusedError(401, "unauthorised", "no such key")
        return found

    def admit_again(self, who: Principal) -> None:
        """Refuse *who* was let in, where its key was revoked since or its token is too old."""
        if who.key and not self.keys.has(who.key):
            raise RefusedError(401, "unauthorised", "the key was revoked")
        if time.time() >= who.ends:
            raise RefusedError(401, "unauthorised", "the token is too old")


class _JwtReader:
    def __init__(self, settings: JwtSettings) -> None:
        import jwt

        self._jwt, self._settings = jwt, settings
        file = settings.secret_file or settings.public_key_file or ""
        self._key = Path(file).read_bytes().strip()
        if settings.secret_file and len(self._key) < 32:
            raise SettingsError(f"[jwt], secret_file: {file} has less than 32 bytes")
        is_shared = [one.startswith("HS") for one in settings.algorithms]
        if any(one != bool(settings.secret_file) for one in is_shared):
            raise SettingsError(
                "[jwt], algorithms: HS… go with secret_file, others with public_key_file"
            )
        if settings.public_key_file and not jwt.algorithms.has_crypto:
            raise SettingsError("[jwt]: public keys need the package cryptography")

    def find(self, token: str) -> Principal | None:
        settings = self._settings
        try:
            claims = self._jwt.decode(
                token,
                self._key,
                algorithms=list(settings.algorithms),
                audience=settings.audience,
                issuer=settings.issuer,
                options={"require": ["exp"], "verify_aud": settings.audience is not None},
            )
        except self._jwt.PyJWTError:
            return None
        owner, scope = claims.get("owner") or claims.get("sub"), claims.get("scope")
        if not isinstance(owner, str) or not NAME.fullmatch(owner) or not isinstance(scope, str):
            return None
        scopes = frozenset(scope.split()) & frozenset(SCOPES)
        return Principal(owner, scopes, ends=float(claims["exp"]))
