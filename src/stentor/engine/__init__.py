"""The engine: subscribe, unsubscribe, move, publish, step, top, explain, save, open."""

from stentor.engine.engine import Engine

__all__ = ["Engine"]
