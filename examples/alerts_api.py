"""An API of alerts on FastAPI: who wants which listing, told over a WebSocket as it comes.

    pip install fastapi uvicorn
    ALERTS_FOLDER=alerts uvicorn alerts_api:app --app-dir examples

    curl -X PUT  localhost:8000/alerts/a1 -H 'x-user: ana' -H 'content-type: application/json' \\
         -d '{"expression": "price < 300 AND ST_DWithin(loc, here(), 2000)", "at": [151.2, -33.9]}'
    curl -X POST localhost:8000/listings -H 'content-type: application/json' \\
         -d '{"id": "tv", "price": 280, "loc": [151.2, -33.9]}'

The engine is durable: an alert that was answered is on disk. Requests of the same moment are one
batch and one commit; the event loop never waits for a match.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import stentor
from stentor import aio

FOLDER = os.environ.get("ALERTS_FOLDER", "alerts")
#: What a user who does not read may have waiting; older ones go first.
MOST_WAITING = 1_000


class Alert(BaseModel):
    """What somebody wants to know of."""

    expression: str
    at: tuple[float, float] | None = None
    until: str | None = None


class Told:
    """The open sockets of users, each with a queue."""

    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[Any]]] = defaultdict(set)

    @asynccontextmanager
    async def listening(self, user: str) -> AsyncIterator[asyncio.Queue[Any]]:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        self._queues[user].add(queue)
        try:
            yield queue
        finally:
            self._queues[user].discard(queue)

    def tell(self, user: str, what: Any) -> None:
        for queue in self._queues.get(user, ()):
            if queue.qsize() >= MOST_WAITING:
                queue.get_nowait()
            queue.put_nowait(what)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The engine lives as long as the application."""
    async with await aio.Engine.open(FOLDER, durable=True) as engine:
        app.state.engine, app.state.told = engine, Told()
        yield


app = FastAPI(title="Alerts", lifespan=lifespan)


@app.exception_handler(stentor.StentorError)
async def refused(request: Request, error: stentor.StentorError) -> JSONResponse:
    """What is wrong is the caller's to mend, and the message says how."""
    status = 404 if isinstance(error, KeyError) else 422
    return JSONResponse({"error": str(error)}, status_code=status)


User = Annotated[str, Header(alias="x-user")]


@app.put("/alerts/{id}")
async def put_alert(id: str, alert: Alert, user: User) -> dict[str, Any]:
    """An alert of *user*, new or instead of the last one; the live listings that it finds."""
    changes = await app.state.engine.subscribe(
        f"{user}/{id}", alert.expression, at=alert.at, until=alert.until, owner=user
    )
    return {"id": id, "listings": changes.added}


@app.get("/alerts")
async def alerts(user: User) -> list[dict[str, Any]]:
    """The alerts of *user*."""
    engine = app.state.engine
    ids = await engine.subscriptions(owner=user)
    return list(await asyncio.gather(*(engine.get(id) for id in ids)))


@app.delete("/alerts/{id}", status_code=204)
async def delete_alert(id: str, user: User) -> None:
    """End an alert."""
    await app.state.engine.unsubscribe(f"{user}/{id}")


@app.post("/listings")
async def post_listing(listing: dict[str, Any]) -> dict[str, Any]:
    """A listing comes, or changes; whom it concerns is told."""
    changes = await app.state.engine.update(listing)
    for change, ids in (("entered", changes.entered), ("left", changes.left)):
        for id in ids:
            user, _, alert = id.partition("/")
            app.state.told.tell(user, {"alert": alert, "change": change, "listing": listing["id"]})
    return {"entered": len(changes.entered), "left": len(changes.left)}


@app.delete("/listings/{id}")
async def delete_listing(id: str) -> dict[str, Any]:
    """A listing is gone."""
    had = await app.state.engine.withdraw(id)
    for one in had:
        user, _, alert = one.partition("/")
        app.state.told.tell(user, {"alert": alert, "change": "left", "listing": id})
    return {"left": len(had)}


@app.websocket("/told/{user}")
async def told(socket: WebSocket, user: str) -> None:
    """What concerns *user*, as it happens."""
    await socket.accept()
    async with app.state.told.listening(user) as queue:
        try:
            while True:
                await socket.send_json(await queue.get())
        except WebSocketDisconnect:
            return
