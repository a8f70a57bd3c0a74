"""`stentor covers`: whether one subscription makes another redundant, and why."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stentor.cli.explain import read_location_option, subscribe_all
from stentor.cli.inputs import ANSWER_NO, SchemaOption, read_schema
from stentor.covering.covers import explain_covering
from stentor.encoding.subscriptions import NormalisedSubscription
from stentor.engine import Engine
from stentor.errors import NeverMatchesWarning
from stentor.language.limits import ANY_SIZE
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model.values import read_location


def command(
    a: Annotated[
        str, typer.Argument(help="An expression; with --subscriptions, the id of one in the file.")
    ],
    b: Annotated[str, typer.Argument(help="Another one.")],
    subscriptions: Annotated[
        Path | None, typer.Option("--subscriptions", "-s", help="A file of subscriptions.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="Where the subscriber of A stands: `longitude,latitude`.")
    ] = None,
    at_b: Annotated[
        str | None, typer.Option("--at-b", help="Where the subscriber of B stands.")
    ] = None,
    schema: SchemaOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Give the answer as JSON.")] = False,
) -> None:
    """Say whether A covers B: whether every event that matches B matches A.

    The exit code is 0 where it does and 1 where it does not, as far as can be told.

        stentor covers "price < 300" "price < 200 AND brand = 'Huawei'"
    """
    engine = Engine(schema=read_schema(schema), clock=None)
    if subscriptions is None:
        with warnings.catch_warnings(category=NeverMatchesWarning, action="ignore"):
            engine.subscribe("A", a, at=read_location_option(at))
            engine.subscribe("B", b, at=read_location_option(at_b))
        a, b = "A", "B"
    else:
        subscribe_all(engine, subscriptions, a, b)
    explained = explain_covering(_normalised(engine, a), _normalised(engine, b), engine.schema)
    print(json.dumps(asdict(explained)) if as_json else explained)
    if not explained:
        raise typer.Exit(ANSWER_NO)


def _normalised(engine: Engine, id: str) -> NormalisedSubscription:
    """The subscription *id* as covering looks at it."""
    known = engine.get(id)
    tree = parse(known["expression"], schema=engine.schema, limits=ANY_SIZE)
    at = read_location(known.get("at"), plane=engine.schema.plane)
    return NormalisedSubscription(normalise(tree, ANY_SIZE), at)
