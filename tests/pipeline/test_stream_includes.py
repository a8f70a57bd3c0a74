"""What a stream's deliveries tell beside ids: exactly what an engine's report does."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings

from stentor import Engine
from stentor.errors import SettingsError
from stentor.pipeline.config.file import load
from stentor.pipeline.stream.settings import StreamSettings
from tests.support import grid

sys.path.insert(0, str(Path(__file__).parent))
from test_stream_equals_engine import cut_histories, run, table

pytestmark = pytest.mark.filterwarnings("ignore::stentor.errors.NeverMatchesWarning")


def reported(history, include):
    """What one engine reports of *history*, in the form of the table."""
    engine = Engine(schema=grid.schema(), clock=None, most_ahead=None)
    report = engine.step(history, include=include)
    tables = ((report.matches, "matched"), (report.stayed, "stayed"), (report.changes, None))
    return sorted(
        (
            *(row["event"], row["subscription"], change or row["change"], row["record"] + 1),
            *(row["alternative"], row["attributes"]),
        )
        for rows, change in tables
        for row in rows.to_pylist()
    )


@given(cut=cut_histories())
@settings(max_examples=settings.default.max_examples // 4)
def test_deliveries_tell_what_a_report_tells(cut):
    history, batches = cut
    with TemporaryDirectory() as folder:
        run(Path(folder), history, batches, stayed=True, include="all", index="scan")
        found = table(Path(folder), "deliveries").to_pylist()
    names = ("event", "subscription", "change", "seq", "alternative", "attributes")
    key = repr
    assert sorted((tuple(row[name] for name in names) for row in found), key=key) == sorted(
        reported(history, "all"), key=key
    )


def test_a_table_of_an_older_release_gets_the_columns(tmp_path, monkeypatch):
    from stentor.pipeline.storage.folder import stream_folder
    from stentor.pipeline.tables import delta_log, files

    schemas = files.table_schemas

    def without(*args, **settings):
        return {
            name: schema.remove(schema.get_field_index("attributes")).remove(
                schema.get_field_index("alternative")
            )
            if name == "deliveries"
            else schema
            for name, schema in schemas(*args, **settings).items()
        }

    old = without(grid_attributes())["deliveries"]
    assert "alternative" not in old.names
    folder = stream_folder(tmp_path) / "deliveries"
    log = delta_log.DeltaLog(folder, old, retention_hours=1)
    assert log.batch == -1
    new = schemas(grid_attributes())["deliveries"]
    delta_log.DeltaLog(folder, new, retention_hours=1)
    there = [field.name for field in DeltaTable(tmp_path / "deliveries").schema().fields]
    assert set(there) == set(new.names)


def grid_attributes():
    from in_process import canonical

    return canonical([]).schema.field("attributes").type


def test_the_setting_is_checked(tmp_path):
    with pytest.raises(SettingsError, match="include"):
        StreamSettings(include="price")
    file = tmp_path / "stentor.toml"
    least = '[[source]]\nformat = "json"\nkind = "changes"\npath = "in"\n[tables]\npath = "out"\n'
    file.write_text(least + 'include = ["title", "price"]\n')
    assert load(file).settings.include == ("title", "price")
    file.write_text(least + 'include = "all"\n')
    assert load(file).settings.include == "all"
    file.write_text(least + 'include = "title"\n')
    with pytest.raises(SettingsError, match='include: expected a list of attributes, or "all"'):
        load(file)
