"""The demonstration's folder: records in files, a `stentor.toml`, and what the pipeline makes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

from stentor.errors import FolderError

if TYPE_CHECKING:
    from stentor.demo.afternoon import Afternoon

CONFIG: Final = "stentor.toml"
RECORDS: Final = "records"
PIPELINE: Final = "pipeline"
MAP: Final = "map.png"
PAGE: Final = "map.html"
#: How many files the afternoon comes in, and how many records are worth one; each is a batch.
FILES: Final = 10
LEAST_RECORDS: Final = 100

_FIRST_LINE: Final = (
    "# An afternoon in Saltmere, as `stentor demo` wrote it: generated anew each time."
)
_CONFIG: Final = """\
{first_line}
# Try it: stentor stream {name} --explain

[[source]]
format = "json"
kind = "records"   # events and changes of subscriptions, told apart by their field `op`
path = "{records}"
max_files = 1      # so that a small afternoon is cut into several batches

[schema]
{schema}

[order]
by = "seq"         # where a record stands among all others
time = "time"      # when it happened

[tables]
path = "{pipeline}"

[trigger]
available_now = true
"""


def prepare(folder: Path, afternoon: Afternoon) -> Path:
    """Fill *folder* with the records of *afternoon*; the file that runs them.

    An earlier demonstration is removed; any other folder that is not empty is refused.
    """
    _clear_earlier(folder)
    (folder / RECORDS).mkdir(parents=True)
    config = folder / CONFIG
    config.write_text(_config(config), "utf-8")
    size = max(LEAST_RECORDS, -(-len(afternoon) // FILES))
    numbered = enumerate(afternoon.records())
    moment = time() - FILES
    for number, lines in enumerate(_cut(numbered, size)):
        file = folder / RECORDS / f"{number:02}.jsonl"
        file.write_text("".join(lines), "utf-8")
        # Spark takes files in the order in which they were changed.
        os.utime(file, (moment + number, moment + number))
    return config


def _clear_earlier(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{folder} is a file; choose another --folder for the demonstration")
    if not folder.exists() or not any(folder.iterdir()):
        return
    config = folder / CONFIG
    if not config.is_file() or not config.read_bytes().startswith(_FIRST_LINE.encode()):
        raise FolderError(
            f"{folder} holds something else than an earlier demonstration; nothing was changed: "
            "choose another --folder"
        )
    _remove_pipeline(folder / PIPELINE)
    shutil.rmtree(folder / RECORDS, ignore_errors=True)
    for drawn in (MAP, PAGE):
        (folder / drawn).unlink(missing_ok=True)


def _remove_pipeline(path: Path) -> None:
    if path.exists():
        from stentor.pipeline.storage.writers import lock_folder

        with lock_folder(path):  # not while somebody runs it
            shutil.rmtree(path)


def _config(path: Path) -> str:
    from stentor.demo.afternoon import KINDS

    kinds = KINDS | {"price": "number range"}  # stalls at the market bargain
    return _CONFIG.format(
        first_line=_FIRST_LINE,
        name=path,
        records=RECORDS,
        pipeline=PIPELINE,
        schema="\n".join(f'{name} = "{kind}"' for name, kind in kinds.items()),
    )


def _cut(numbered: Iterator[tuple[int, dict[str, Any]]], size: int) -> Iterator[list[str]]:
    """The records as JSON lines, each with its seq, *size* at a time."""
    while some := list(islice(numbered, size)):
        yield [
            json.dumps({"seq": seq, **record}, ensure_ascii=False) + "\n" for seq, record in some
        ]
