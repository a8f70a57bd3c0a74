"""The HTTP calls on subscriptions, events and questions (docs/service.md)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from stentor.errors import RecordError, StentorError
from stentor.model.record import Op
from stentor.service import questions
from stentor.service.auth import ANY, Principal
from stentor.service.core import checked_client
from stentor.service.records import Records, RecordsAnswer
from stentor.service.refusals import RefusedError, not_found
from stentor.service.requests import (
    NDJSON,
    Service,
    answer,
    body_of,
    client_of,
    content_type,
    event_object,
    events_of,
    lines_of,
    number,
    object_of,
    refusal,
)

_LOG: Final = logging.getLogger("stentor.service")
#: Of a question's body.
_QUESTION: Final = 1_000_000

Handler = Callable[["Handlers", Request, Principal], Awaitable[Response]]
HANDLED: Final[dict[tuple[str, str], tuple[str, Handler]]] = {}


def handles(method: str, path: str, scope: str) -> Callable[[Handler], Handler]:
    """Let a method answer *method* on *path*, for who has *scope*."""

    def registered(handler: Handler) -> Handler:
        HANDLED[method, path] = scope, handler
        return handler

    return registered


class Handlers:
    """Answers requests; what is refused is an answer too."""

    def __init__(self, service: Service) -> None:
        self.service, self.hub = service, service.hub
        self.limits = service.settings.limits

    def endpoint(self, method: str, path: str) -> Callable[[Request], Awaitable[Response]]:
        """The handler of *method* on *path*, as Starlette calls it."""
        scope, handler = HANDLED[method, path]

        async def run(request: Request) -> Response:
            owner = ""
            try:
                who = self.service.principal(request, scope)
                owner = who.owner
                return await handler(self, request, who)
            except StentorError as error:
                return refusal(error, owner)
            except Exception:  # noqa: BLE001 – a defect is an answer, and is logged
                _LOG.exception("%s %s failed", method, request.url.path)
                return refusal(
                    RefusedError(500, "defect", "a defect of Stentor; its log says more")
                )

        return run

    async def submit(
        self,
        who: Principal,
        client: str,
        raws: list[Any],
        op: Op | None,
        *,
        wants_results: bool = True,
    ) -> RecordsAnswer:
        """What *raws* led to, once it is kept."""
        self.service.records.take(who.owner, len(raws))
        records = Records(who.owner, client, raws, op, who.record_scopes, wants_results)
        return await self.hub.submit(records)

    async def _one(self, who: Principal, raw: dict[str, Any], client: str = "default") -> Any:
        """What the one record *raw* led to; its error is raised."""
        found = await self.submit(who, client, [raw], None)
        if found.errors:
            raise found.errors[0][1]
        return found.results[0]

    # Subscriptions.

    @handles("PUT", "/v1/subscriptions/{id:id}", "subscribe")
    async def put_subscription(self, request: Request, who: Principal) -> Response:
        """Let a subscription be there, or replace it."""
        raw, id = await object_of(request, self.limits.body), request.path_params["id"]
        if raw.get("id") not in (None, id):
            raise RecordError("the body's id is another one than that of the path", field="id")
        raw = {**raw, "id": id, "op": "subscribe"}
        found = await self._one(who, raw)
        response = await self.hub.ask(lambda core: questions.subscription_of(core, who.owner, id))
        changes = {"added": found["added"], "removed": found["removed"]}
        return answer({"subscription": response, **changes}, 201 if found["created"] else 200)

    @handles("GET", "/v1/subscriptions/{id:id}", "subscribe")
    async def get_subscription(self, request: Request, who: Principal) -> Response:
        """One subscription."""
        id = request.path_params["id"]
        response = await self.hub.ask(lambda core: questions.subscription_of(core, who.owner, id))
        if response is None:
            raise not_found("subscription", id)
        return answer({"subscription": response})

    @handles("DELETE", "/v1/subscriptions/{id:id}", "subscribe")
    async def delete_subscription(self, request: Request, who: Principal) -> Response:
        """Let a subscription go."""
        await self._one(who, {"op": "unsubscribe", "id": request.path_params["id"]})
        return Response(status_code=204)

    @handles("POST", "/v1/subscriptions/{id:id}/move", "subscribe")
    async def move_subscription(self, request: Request, who: Principal) -> Response:
        """Put a subscriber somewhere else."""
        raw = await object_of(request, _QUESTION)
        move = {"op": "move", "id": request.path_params["id"], "at": raw.get("at")}
        found = await self._one(who, move)
        return answer({"added": found["added"], "removed": found["removed"]})

    @handles("GET", "/v1/subscriptions", "subscribe")
    async def list_subscriptions(self, request: Request, who: Principal) -> Response:
        """A page of subscriptions."""
        after, limit = request.query_params.get("after", ""), _limit(request)
        client = client_of(request) if "client" in request.query_params else None
        return answer(
            await self.hub.ask(
                lambda core: questions.subscriptions_page(core, who.owner, after, limit, client)
            )
        )

    @handles("POST", "/v1/subscriptions", "subscribe")
    async def bulk_subscriptions(self, request: Request, who: Principal) -> Response:
        """Many changes of subscriptions at once."""
        if content_type(request) != NDJSON:
            raise RefusedError(415, "unsupported", f"expected {NDJSON}")
        raws = lines_of(await body_of(request, self.limits.body))
        found = await self.submit(who, client_of(request), raws, "subscribe", wants_results=False)
        found.errors = [(position + 1, error) for position, error in found.errors]
        response = found.to_dict(who.owner, with_results=False, position="line")
        return answer(response, 400 if raws and not found.accepted else 200)

    # Clients.

    @handles("DELETE", "/v1/clients/{client}", "subscribe")
    async def remove_client(self, request: Request, who: Principal) -> Response:
        """Forget a client: its subscriptions, its queue, its webhook."""
        key = who.owner, checked_client(request.path_params["client"])
        has_webhook = await self.service.webhooks.remove(key)
        if not await self.hub.ask(lambda core: core.remove_client(key)) and not has_webhook:
            raise not_found("client", key[1])
        return Response(status_code=204)

    # Events.

    @handles("POST", "/v1/events", "publish")
    async def post_events(self, request: Request, who: Principal) -> Response:
        """Publish events."""
        raws = await events_of(request, self.limits.body)
        wants_results = request.query_params.get("results", "true") != "false"
        found = await self.submit(who, "default", raws, "publish", wants_results=wants_results)
        response = found.to_dict(who.owner, with_results=wants_results)
        status = 200
        if raws and not found.accepted:
            status = 400
            if all(isinstance(error, RefusedError) for _, error in found.errors):
                raise found.errors[0][1]
        return answer(response, status)

    @handles("GET", "/v1/events/recent", "subscribe")
    async def recent_events(self, request: Request, who: Principal) -> Response:
        """The last events, the newest last."""
        limit = int(number(request, "limit", 200, 1, questions.MOST_PAGE))
        minutes = number(request, "minutes", 10, 0, 10_000)
        shared = self.service.settings.shared_events

        def recent(core: Any) -> list[Any]:
            newest = core.recent.newest(who.owner, core.now(), minutes, shared=shared)
            return [seen.to_dict(who.owner) for seen, _ in zip(newest, range(limit), strict=False)]

        found = await self.hub.ask(recent)
        return answer({"events": found[::-1]})

    @handles("GET", "/v1/events/live", "subscribe")
    async def live_events(self, request: Request, who: Principal) -> Response:
        """A page of live events."""
        after, limit = request.query_params.get("after", ""), _limit(request)
        page = await self.hub.ask(lambda core: questions.live_page(core, who.owner, after, limit))
        return answer(page)

    @handles("GET", "/v1/events/{id:id}", "subscribe")
    async def get_event(self, request: Request, who: Principal) -> Response:
        """One event, live or remembered."""
        id = request.path_params["id"]
        return answer(await self.hub.ask(lambda core: questions.event_of(core, who.owner, id)))

    @handles("PUT", "/v1/events/{id:id}", "publish")
    async def update_event(self, request: Request, who: Principal) -> Response:
        """Let a live event be another one, or publish it."""
        raws, id = await events_of(request, self.limits.body), request.path_params["id"]
        if len(raws) != 1:
            raise RecordError(f"an update has one event, got {len(raws)}")
        plain = event_object(raws[0])
        if plain.get("id") not in (None, id):
            raise RecordError("the body's id is another one than that of the path", field="id")
        return answer(await self._one(who, {**plain, "id": id, "op": "update"}))

    @handles("DELETE", "/v1/events/{id:id}", "publish")
    async def withdraw_event(self, request: Request, who: Principal) -> Response:
        """Let a live event be over."""
        return answer(await self._one(who, {"op": "withdraw", "id": request.path_params["id"]}))

    # Questions.

    @handles("POST", "/v1/match", "subscribe")
    async def match(self, request: Request, who: Principal) -> Response:
        """What an expression would have matched."""
        asked = await object_of(request, _QUESTION)
        minutes, limit = _bounded(asked, "minutes", 10, 10_000), _bounded(asked, "limit", 100, 1000)
        core = self.hub.owner.core
        assert core is not None, "it is ready"
        found = await asyncio.to_thread(
            questions.would_match,
            core,
            who.owner,
            asked.get("expression"),
            asked.get("at"),
            minutes,
            int(limit),
        )
        return answer(found)

    @handles("POST", "/v1/explain", "subscribe")
    async def explain(self, request: Request, who: Principal) -> Response:
        """Why a subscription wants an event, or why not."""
        asked = await object_of(request, self.limits.body)
        found = await self.hub.ask(lambda core: questions.explanation(core, who.owner, asked))
        return answer(found)

    @handles("POST", "/v1/why-not", "subscribe")
    async def why_not(self, request: Request, who: Principal) -> Response:
        """Who does not want an event, and why."""
        asked = await object_of(request, self.limits.body)
        return answer(await self.hub.ask(lambda core: questions.why_not(core, who.owner, asked)))

    @handles("GET", "/v1/schema", "subscribe")
    async def schema(self, request: Request, who: Principal) -> Response:
        """The attributes that are known."""
        return answer(await self.hub.ask(questions.schema_of))

    @handles("GET", "/v1/stats", "subscribe")
    async def stats(self, request: Request, who: Principal) -> Response:
        """What is going on."""
        owner = who.owner
        return answer(await self.hub.ask(lambda core: questions.stats_of(core, self.hub, owner)))

    @handles("GET", "/v1/brokers", "subscribe")
    async def brokers(self, request: Request, who: Principal) -> Response:
        """The tree of brokers."""
        return answer(await self.hub.ask(questions.brokers_of))

    @handles("DELETE", "/v1/links/{broker}", "admin")
    async def remove_link(self, request: Request, who: Principal) -> Response:
        """Be linked with a broker no longer; what waits for it is forgotten."""
        broker = request.path_params["broker"]

        def remove(core: Any) -> None:
            if broker not in core.broker.links:
                raise not_found("link", broker)
            core.links.remove(broker)

        await self.hub.ask(remove)
        return Response(status_code=204)

    # Who may.

    @handles("POST", "/v1/tickets", ANY)
    async def ticket(self, request: Request, who: Principal) -> Response:
        """A ticket that opens one connection."""
        return answer(self.service.gate.tickets.issue(who), 201)

    @handles("GET", "/v1/keys", "admin")
    async def list_keys(self, request: Request, who: Principal) -> Response:
        """The keys of the server, without their secrets."""
        keys = self.service.gate.keys.all()
        shown = ("id", "owner", "scopes", "created", "note")
        return answer({"keys": [{name: getattr(one, name) for name in shown} for one in keys]})

    @handles("POST", "/v1/keys", "admin")
    async def add_key(self, request: Request, who: Principal) -> Response:
        """A new key: it is shown here, and never again."""
        raw = await object_of(request, _QUESTION)
        owner, scopes, note = raw.get("owner"), raw.get("scopes"), raw.get("note", "")
        if not isinstance(scopes, list) or not all(isinstance(one, str) for one in scopes):
            raise RecordError('expected a list like ["publish", "subscribe"]', field="scopes")
        key = await asyncio.to_thread(self.service.gate.keys.add, str(owner), scopes, str(note))
        return answer({"key": key}, 201)

    @handles("DELETE", "/v1/keys/{id}", "admin")
    async def revoke_key(self, request: Request, who: Principal) -> Response:
        """Let a key open nothing any more."""
        id = request.path_params["id"]
        if not await asyncio.to_thread(self.service.gate.keys.revoke, id):
            raise not_found("key", id)
        return Response(status_code=204)

    @handles("POST", "/v1/backup", "admin")
    async def backup(self, request: Request, who: Principal) -> Response:
        """Write a copy of the store beside it, while it runs."""
        folder = self.service.settings.folder / "backups"

        def write(core: Any) -> str:
            folder.mkdir(exist_ok=True)
            path = folder / f"service-{core.now()}.db"
            core.store.back_up(path)
            return str(path)

        return answer({"file": await self.hub.ask(write)}, 201)


def _limit(request: Request) -> int:
    return int(number(request, "limit", 100, 1, questions.MOST_PAGE))


def _bounded(asked: dict[str, Any], name: str, default: float, most: float) -> float:
    value = asked.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise RecordError(f"expected a number from 0 to {most:g}", field=name)
    return float(value)
