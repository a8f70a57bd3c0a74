"""Spark for the commands that run on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from stentor.cli.steps import step
from stentor.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MasterOption = Annotated[
    str | None,
    typer.Option(
        help="Where Spark runs: `local[4]`, `spark://host:7077`, …; all cores of this machine if "
        "not given."
    ),
]


@contextmanager
def spark_session(
    master: str | None = None,
    *,
    name: str,
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A Spark session while the command runs; a SettingsError says what is missing."""
    need_spark()
    from stentor.pipeline.spark.command_session import command_session

    made = command_session(master, name=name, quick=quick, settings=settings)
    with ExitStack() as stack:
        with step("Starting Spark"):
            spark = stack.enter_context(made)
        yield spark


def need_spark() -> None:
    """A SettingsError where the packages that Spark needs are not installed."""
    import stentor.pipeline

    try:
        _ = stentor.pipeline.start
    except ImportError as error:
        raise SettingsError(str(error)) from None
