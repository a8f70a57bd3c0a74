"""The command `stentor`: thin commands around the library."""

from __future__ import annotations


def main() -> None:
    """Run the command line; what it cannot do is one clear message and an exit code."""
    try:
        from stentor.cli.app import run

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
