"""What stands in the folder of a pipeline and nothing names: none of it may stay for good."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.tables.files import TABLES


def leftovers(path: Path) -> list[Path]:
    """The files and folders that neither the last manifest nor any table names."""
    last = Commits(path).last()
    assert last is not None
    named = {path / "bases" / name for name in last.bases}
    named |= {path / "segments" / one.name for one in last.segments}
    named |= {path / "live" / one.name for one in last.live}
    for name in TABLES:
        folder = path / "tables" / name
        actions = pa.table(DeltaTable(folder).get_add_actions())
        named |= {folder / file for file in actions["path"].to_pylist()}
    stands = {
        one for kind in ("bases", "segments", "live", "work") for one in path.glob(f"{kind}/*")
    }
    files = {*path.glob("tables/**/*.parquet")}
    stands |= {file for file in files if "_delta_log" not in file.parts}
    stands |= {*path.rglob("*.partial"), *path.rglob("*#*")}
    return sorted(stands - named)
