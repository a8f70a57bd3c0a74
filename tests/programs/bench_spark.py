"""Tables of `stentor bench spark` on tiny workloads, as JSON: each kind once, in one session."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from stentor.bench import BenchOptions, BenchResult
from stentor.bench.spark_engine import compared
from stentor.bench.spark_events import Offers
from stentor.bench.spark_latency import micro_batches
from stentor.bench.spark_messages import Messages
from stentor.bench.spark_scale import Bench, Sessions
from stentor.bench.spark_sql import against_joins
from stentor.bench.spark_worker import opening
from stentor.workloads.phones import Phones


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
