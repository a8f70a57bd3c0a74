"""Opens folders that were damaged or forged; whatever happens, no signal ends the process.

    forged.py SEED COUNT FOLDER…

*flipped*: single bits, as disks and networks leave them. *forged*: any element or setting, with
sums that fit, as a stranger may write them.
"""

import json
import random
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from stentor import Engine
from stentor.errors import StentorError
from stentor.index.storage import arrays

EVENTS: list[dict[str, Any]] = [
    {"id": f"p{n}", "text": "jazz tea", "price": n, "city": "Oslo", "loc": [n, n]} for n in range(4)
]
ODD: list[Any] = [-1, 0, 1, 2**31, 2**63 - 1, -(2**63), 1e308, "", "scan", "../x", None, [], {}]


def answers(engine: Engine) -> list[Any]:
    found: list[Any] = [engine.top(event, 100) for event in EVENTS]
    for id in engine:
        found += [engine.get(id), engine.explain(id, EVENTS[0]).matches]
        found.append(engine.safe_region(id).distance)
    found.append(engine.subscribe("new", "price < 9 OR has_any(text, 'tea')", at=(1, 1)))
    found.append(engine.move("new", (2, 2)))
    found += [engine.publish(event) for event in EVENTS]
    return found


def flip(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def forge(file: Path, chance: random.Random) -> None:
    """Another element of an array, or another setting of a manifest; the sums fit."""
    manifest = file.with_name(arrays.MANIFEST)
    said = json.loads(manifest.read_bytes())
    if file == manifest:
        put(said, chance)
    else:
        with file.open("rb+") as content:
            array = np.lib.format.open_memmap(file, mode="r+")
            if array.size:
                flat = array.reshape(-1).view(np.uint8)
                width = array.itemsize
                start = chance.randrange(array.size) * width
                odd = chance.choice([-1, 1, 0, 2**31 - 1, array.size, chance.getrandbits(62)])
                wanted = int(odd).to_bytes(16, "little", signed=True)[:width]
                flat[start : start + width] = list(wanted)
                array.flush()
            content.seek(0)
        for entry in said["arrays"].values():
            if entry["file"] == file.name:
                entry["sum"] = arrays._sum_of_file(file)
    said["sum"] = ""
    try:
        sealed = msgspec.convert(said, arrays._Manifest)
        said["sum"] = arrays._sum(msgspec.json.encode(sealed))
    except msgspec.ValidationError:
        pass
    manifest.write_text(json.dumps(said))


def put(value: Any, chance: random.Random) -> None:
    """Change something in *value*."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = chance.choice(keys)
    if isinstance(value[key], (dict, list)) and value[key] and chance.random() < 0.9:
        put(value[key], chance)
    else:
        value[key] = chance.choice(ODD)


def tried(folder: Path, seed: int, count: int, how: str) -> Counter[str]:
    """How often what came of it."""
    expected = answers(Engine.open(folder, clock=None))
    outcomes: Counter[str] = Counter()
    for number in range(seed, seed + count):
        chance = random.Random(number)
        copy = folder.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        file = chance.choice(sorted(file for file in copy.rglob("*") if file.is_file()))
        print(number, file.relative_to(copy), file=sys.stderr, flush=True)
        (flip if how == "flipped" else forge)(file, chance)
        signal.alarm(60)
        try:
            found = answers(Engine.open(copy, clock=None))
        except StentorError as error:
            outcomes[type(error).__name__] += 1
            continue
        assert how == "forged" or found == expected, "another answer"
        outcomes["the same" if found == expected else "another"] += 1
    signal.alarm(0)
    return outcomes


if __name__ == "__main__":
    seed, count, *folders = sys.argv[1:]
    outcomes: dict[str, Counter[str]] = {"flipped": Counter(), "forged": Counter()}
    for folder in folders:  # one process for all: loading kernels takes longer than the rest
        for how, found in outcomes.items():
            found.update(tried(Path(folder), int(seed), int(count), how))
    print(json.dumps(outcomes))
