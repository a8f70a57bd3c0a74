"""One drawn example for every index: drawing costs more than what is tested with it."""

import inspect
import os
from functools import wraps
from tempfile import TemporaryDirectory

from hypothesis import note


class DrawnOnce:
    """`st.data()` whose values are drawn in the first run and given again in the others."""

    def __init__(self, data):
        self._data, self._values, self._next = data, [], 0

    def start(self):
        self._next = 0

    def draw(self, strategy):
        if self._next == len(self._values):
            self._values.append(self._data.draw(strategy))
        self._next += 1
        return self._values[self._next - 1]


def for_each(argument, values):
    """Decorate a test below `@given`: run it with each of *values* as *argument* on each example.

    The failing value is noted. Draws from `data` must not depend on *argument*.
    """

    def decorate(test):
        signature = inspect.signature(test)
        others = signature.replace(
            parameters=[one for name, one in signature.parameters.items() if name != argument]
        )

        @wraps(test)
        def run(*args, **kwargs):
            drawn = others.bind(*args, **kwargs).arguments
            if "data" in drawn:
                drawn["data"] = DrawnOnce(drawn["data"])
            for value in values:
                note(f"{argument}: {value}")
                if "data" in drawn:
                    drawn["data"].start()
                test(**{argument: value}, **drawn)

        run.__signature__ = others
        return run

    return decorate


def folder_in_memory():
    """A `TemporaryDirectory` whose files cost no disk, where the system has such a folder."""
    return TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
