"""`stentor cover`: the subscriptions of a file that must be forwarded, without those they cover."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Final

import typer

from stentor._files import replaced
from stentor.cli.inputs import JsonOption, RejectedFile, SchemaOption, feed, read_schema
from stentor.cli.match import check_out, check_output, file_of
from stentor.cli.rejected import MostRejectedOption, RejectedShare
from stentor.cli.screen import summarise
from stentor.engine import Engine
from stentor.wire.records import subscription_from_dict
from stentor.wire.rejected import Rejected
from stentor.wire.table_writers import subscriptions_to_table

#: Subscriptions that the summary names, those that cover the most.
MOST_NAMED: Final = 10


def command(
    subscriptions: Annotated[
        Path,
        typer.Option(
            "--subscriptions",
            "-s",
            help="JSON lines or Parquet: `id`, `expression`, `at`, `until`; `-` is stdin.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="`.parquet` or `.jsonl`; standard output if not given."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Where to write, as JSON lines, what covers what: `id`, `covered_by`."),
    ] = None,
    rejected: Annotated[
        Path, typer.Option(help="Where bad records go, with their reasons, if there are any.")
    ] = Path("rejected.jsonl"),
    schema: SchemaOption = None,
    most_rejected: MostRejectedOption = 0.5,
    as_json: JsonOption = False,
) -> None:
    """Reduce the subscriptions of a file to those that no other one covers.

    Whatever matches one that is left out matches one that is kept, until it ends and wherever
    subscribers move. The summary tells how many are left out and which ones cover the most.

        stentor cover -s subscriptions.jsonl -o forwarded.jsonl --pairs covered.jsonl
    """
    start = perf_counter()
    check_out(out)
    for path in (out, pairs, rejected):
        check_output(path, [subscriptions])
    engine = Engine("scan", schema=read_schema(schema), clock=None)
    share = RejectedShare(most_rejected)
    with RejectedFile(rejected) as rejects:

        def on_rejected(source: Path, bad: Rejected) -> None:
            rejects.add(source, bad)
            share.reject(source, bad)

        for _, taken in feed(engine, subscriptions, "subscribe", on_rejected):
            share.take(subscriptions, taken.total())
        share.finish(subscriptions)
    found = engine.redundant()
    left_out = {one.id for one in found}
    kept = [id for id in engine if id not in left_out]
    _write(engine, kept, file_of(out))
    if pairs is not None:
        with replaced(pairs) as partial, partial.open("w", encoding="utf-8") as lines:
            lines.writelines(_lines(one._asdict() for one in found))
    most = Counter(one.covered_by for one in found).most_common(MOST_NAMED)
    counts: dict[str, Any] = {
        "subscriptions": len(engine),
        "forwarded": len(kept),
        "redundant": len(found),
        "share forwarded": round(len(kept) / max(len(engine), 1), 4),
        **share.summary(as_json=as_json),
        "seconds": round(perf_counter() - start, 3),
    }
    if rejects.count:
        counts["rejected file"] = str(rejected)
    if as_json:
        counts["covers the most"] = dict(most)
    else:
        counts |= {f"covered by {id}": count for id, count in most}
    summarise(counts, as_json=as_json, to_output=file_of(out) is not None)


def _write(engine: Engine, ids: list[str], path: Path | None) -> None:
    """Write the subscriptions *ids* in the form that the name of *path* says."""
    records = map(engine.get, ids)
    if path is None:
        sys.stdout.writelines(_lines(records))
        return
    with ExitStack() as stack:
        partial = stack.enter_context(replaced(path))
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            taken = (subscription_from_dict(record, engine.schema) for record in records)
            pq.write_table(subscriptions_to_table(taken), partial)
        else:
            stack.enter_context(partial.open("w", encoding="utf-8")).writelines(_lines(records))


def _lines(records: Any) -> Iterator[str]:
    for record in records:
        yield json.dumps(record, ensure_ascii=False) + "\n"
