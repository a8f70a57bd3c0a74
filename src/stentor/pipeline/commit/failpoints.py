"""Points at which a test may kill the process: the steps of a commit, of compaction and of removal.

`STENTOR_FAILPOINT=manifest-linked` kills the process the first time it comes to that point,
`manifest-linked:3` the third time. SIGKILL leaves no chance to tidy up, as a power cut would.
"""

from __future__ import annotations

import itertools
import os
import signal

#: All of them, in the order of a pipeline's life.
FAILPOINTS = (
    "records-read",
    "order-written",
    "changes-settled",
    "events-matched",
    "segments-folded",
    "live-joined",
    "bases-built",
    "bases-adopted",
    "table-created",
    "columns-added",
    "table-file-written",
    "manifest-started",
    "manifest-written",
    "manifest-linked",
    "manifest-committed",
    "delta-written",
    "delta-linked",
    "delta-committed",
    "delta-rolled-forward",
    "files-merged",
    "table-compacted",
    "rows-expired",
    "table-checkpointed",
    "manifest-pruned",
    "unused-removed",
)

_name, _, _count = os.environ.get("STENTOR_FAILPOINT", "").partition(":")
_visits = itertools.count(1)


def failpoint(name: str) -> None:
    """Kill this process here if the environment says so; nothing otherwise."""
    if _name and name == _name and next(_visits) == int(_count or 1):
        # Windows has no SIGKILL; there `os.kill` ends the process whatever the signal.
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
