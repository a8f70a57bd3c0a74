"""Steps that take seconds: each is a line on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from stentor.cli.screen import console


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say *title* while the step runs; on a terminal also that it goes on, and what it took."""
    screen = console()
    if not screen.is_terminal:
        screen.print(f"{title} …", markup=False, soft_wrap=True)
        yield
        return
    start = perf_counter()
    with screen.status(f"{title} …"):
        yield
    screen.print(f"{title}: {perf_counter() - start:.1f} s", markup=False)


def say(sentence: str) -> None:
    """Tell something on standard error, in a line."""
    console().print(sentence, markup=False, soft_wrap=True)
