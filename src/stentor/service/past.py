"""A pipeline's tables on the map: a small server on the loopback for `stentor console`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from stentor.engine import Engine
from stentor.errors import FolderError, StentorError
from stentor.pipeline.tables.recording import MOST_ROWS, RECORDED, START, Cursor, read_recording
from stentor.service.pages import FILES, POLICY

_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".geojson": "application/geo+json",
}
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_LONGEST_QUESTION: Final = 1 << 20


def past_app(folder: Path, *, most: int = MOST_ROWS) -> Starlette:
    """The pages that show the pipeline in *folder*; of each table at most about *most* rows."""
    path = pipeline_folder(folder)

    def recording(request: Request) -> Response:
        after = _cursor(request.query_params.get("after", ""))
        if after is None:
            return _refusal(400, "after is three numbers of batches, as cursor_text gave them")
        part = read_recording(path, after, most=most)
        cursor = ",".join(str(part["cursor"][name]) for name in RECORDED)
        title = f"The stream in {folder.resolve().name}"
        return JSONResponse({**part, "cursor_text": cursor, "title": title}, headers=_HEADERS)

    return Starlette(
        routes=[
            Route("/", lambda _: _file("past.html")),
            Route("/{name}", lambda request: _file(request.path_params["name"])),
            Route("/v1/recording", recording),
            Route("/v1/explain", _explain, methods=["POST"]),
        ],
        # A page elsewhere may not reach this one by a name that it points to this machine.
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    )


def serve_past(
    folder: Path, port: int, on_ready: Callable[[str], None], *, most: int = MOST_ROWS
) -> None:
    """Serve `past_app` on the loopback until it is interrupted; *on_ready* hears the address."""
    app = past_app(folder, most=most)
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off")
    listener = config.bind_socket()
    on_ready(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    uvicorn.Server(config).run(sockets=[listener])


def pipeline_folder(folder: Path) -> Path:
    """Where the tables are: *folder* itself, or the pipeline in the folder of a demonstration."""
    for path in (folder, folder / "pipeline"):
        if (path / "tables").is_dir():
            return path
    raise FolderError(
        f"{folder} holds no tables of a pipeline: name the `path` in the [tables] of its "
        "stentor.toml, or the folder of a demonstration"
    )


def _cursor(text: str) -> Cursor | None:
    if not text:
        return START
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        return None
    return dict(zip(RECORDED, numbers, strict=True)) if len(numbers) == len(RECORDED) else None


def _file(name: str) -> Response:
    known = {file.name: file for file in FILES.iterdir() if file.suffix in _TYPES}
    if name not in known:
        return _refusal(404, f"the console has no file {name}")
    return FileResponse(known[name], media_type=_TYPES[known[name].suffix], headers=_HEADERS)


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message}}, status, headers=_HEADERS)


async def _explain(request: Request) -> Response:
    """Why an expression wants an event, or not: as the service answers `/v1/explain`."""
    if int(request.headers.get("content-length", _LONGEST_QUESTION)) >= _LONGEST_QUESTION:
        return _refusal(413, "a question has less than a megabyte")
    try:
        question = json.loads(await request.body())
        return JSONResponse(_explained(question), headers=_HEADERS)
    except (StentorError, ValueError, KeyError, TypeError, AttributeError) as error:
        return _refusal(400, str(error))


def _explained(question: dict[str, Any]) -> dict[str, Any]:
    engine = Engine(clock=None)
    engine.subscribe("subscription", question["expression"], at=question.get("at"))
    found = engine.explain("subscription", question["event"])
    return {
        "event": found.event,
        "matches": found.matches,
        "score": found.score,
        "note": found.note,
        "alternatives": [
            {
                "truth": alternative.truth,
                "findings": [
                    {"predicate": one.predicate, "truth": one.truth, "found": one.found}
                    for one in alternative.findings
                ],
            }
            for alternative in found.alternatives
        ],
    }
