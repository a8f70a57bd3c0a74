"""A folder that is started on again: what must be as before, and what may still change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from stentor.errors import FolderError, SettingsError
from stentor.model import Schema
from stentor.pipeline.commit.manifests import Manifest
from stentor.pipeline.commit.new_files import explaining
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.tables.files import table_folder

if TYPE_CHECKING:
    import pyarrow as pa


def check_unchanged(
    last: Manifest, path: Path, settings: StreamSettings, declared: Schema | None
) -> None:
    """Refuse what cannot change once the pipeline in *path* has committed a batch, its *last*."""
    for name, meaning in (("has_order", "order"), ("has_time", "time")):
        if last.settings[name] != getattr(settings, name):
            was = "named" if last.settings[name] else "did not name"
            raise SettingsError(
                f"{path} began with a pipeline that {was} a column for the {meaning}, and this "
                "cannot change; start it as before, or choose another folder"
            )
    if declared is not None and declared.to_dict() != last.schema:
        raise SettingsError(
            f"{path} began with the schema {Schema.from_dict(last.schema)}, which is not the one "
            f"declared now, {declared}; start it as before, or choose another folder"
        )


def discard_empty_tables(path: Path, schemas: Mapping[str, pa.Schema]) -> None:
    """Remove the tables that a start before the first batch made for other columns than *schemas*.

    Only where no batch is committed. A table that has rows then has lost its manifests, and new
    batches would not be added to it: a FolderError.
    """
    from deltalake import DeltaTable
    from deltalake import Schema as DeltaSchema

    from stentor.pipeline.tables.delta_log import APPLICATION, open_table

    for name, schema in schemas.items():
        folder = table_folder(path, name)
        if not DeltaTable.is_deltatable(str(folder)):
            continue
        table = open_table(folder)
        if table.transaction_version(APPLICATION) is not None:
            raise FolderError(
                f"{folder} holds rows, but no manifest of their batches is left in "
                f"{path / 'manifests'}; restore those from a backup, or choose another folder"
            )
        if table.schema() != DeltaSchema.from_arrow(schema):
            # As a whole: of half a log nobody can tell any more what it was.
            with explaining(folder):
                folder.rename(path / "work" / f"{name}-{uuid4().hex}")
