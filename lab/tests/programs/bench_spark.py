"""Tables of `stentor-lab bench spark` on tiny workloads, as JSON: each kind once, one session."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from stentor_lab.bench import BenchOptions, BenchResult
from stentor_lab.bench.spark.engine import compared
from stentor_lab.bench.spark.events import Offers
from stentor_lab.bench.spark.latency import micro_batches
from stentor_lab.bench.spark.messages import Messages
from stentor_lab.bench.spark.scale import Bench, Sessions
from stentor_lab.bench.spark.sql import against_joins
from stentor_lab.bench.spark.worker import opening
from stentor_lab.workloads.phones import Phones


def main() -> None:
    """Print them."""
    sessions = Sessions(quick=True)
    with TemporaryDirectory() as folder:
        bench = Bench(BenchOptions(size=600, repetitions=1), Path(folder), sessions)
        messages = Messages(bench, warm=2, counted=6)
        try:
            tables = (
                opening(bench, messages),
                compared(bench, Offers.drawn(bench), "scan", "wide", Phones(1).mixed_texts(200)),
                micro_batches(bench, messages),
                against_joins(bench, messages),
            )
        finally:
            sessions.stop()
    print(json.dumps(BenchResult("spark", tables, {}).to_dict()))


if __name__ == "__main__":
    main()
