"""The command `stentor`: thin commands around the library."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; what it cannot do is one clear message and an exit code."""
    try:
        from stentor.cli.app import run

        run()
    except KeyboardInterrupt:  # while modules are imported
        raise SystemExit(130) from None
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("rich", "typer"):
            raise
        missing = f"its extra 'cli' is not installed ({package} is missing)"
        print(f"stentor: {missing}: pip install 'stentor[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
