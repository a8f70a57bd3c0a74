"""What every kind of source promises, as far as it can be seen without Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from stentor.errors import SettingsError
from stentor.pipeline.config.file import load
from stentor.pipeline.sources import KEYS, SOURCES, SourceSettings, source_named

VALUES = {
    "path": '"in"',
    "topic": '"news"',
    "servers": '"localhost:9092"',
    "max_files": "2",
    "max_records": "3",
    "drop": '["junk"]',
}


def config(folder: Path, word: str, keys: dict[str, str], schema: str = 'price = "number"') -> Path:
    lines = "\n".join(f"{key} = {value}" for key, value in keys.items())
    file = folder / "stentor.toml"
    file.write_text(
        f'[tables]\npath = "out"\n[schema]\n{schema}\n'
        f'[[source]]\nformat = "{word}"\nkind = "events"\n{lines}\n'
    )
    return file


def needed(word: str) -> dict[str, str]:
    return {key: VALUES[key] for key in source_named(word).required}


@pytest.mark.parametrize("word", SOURCES)
def test_a_source_takes_its_own_keys_and_refuses_others(word: str, tmp_path: Path) -> None:
    source = source_named(word)
    assert set(source.required) <= source.keys <= set(KEYS)
    own = {key: VALUES[key] for key in source.keys}
    [found] = load(config(tmp_path, word, own)).sources
    assert found.format == word
    assert all(getattr(found, key) for key in source.keys)
    for key in {*KEYS} - source.keys:
        with pytest.raises(SettingsError, match=rf"\[\[source\]\] 1, {key}"):
            load(config(tmp_path, word, {**own, key: VALUES[key]}))
    for key in source.required:
        with pytest.raises(SettingsError, match=rf"\[\[source\]\] 1, {key}: missing"):
            load(config(tmp_path, word, {one: VALUES[one] for one in own if one != key}))


@pytest.mark.parametrize("word", SOURCES)
def test_a_source_is_described_and_named(word: str, tmp_path: Path) -> None:
    [settings] = load(config(tmp_path, word, needed(word))).sources
    source = source_named(word)
    assert source.title
    assert word in settings.name
    where = source.where(settings)
    assert all(str(getattr(settings, key)) in where for key in source.required)


@pytest.mark.parametrize("word", SOURCES)
def test_what_is_not_there_is_told_before_anything_runs(word: str, tmp_path: Path) -> None:
    [settings] = load(config(tmp_path, word, needed(word))).sources
    source = source_named(word)
    assert source.local_files(SourceSettings(format=word, kind="events")) == []
    found = list(source.mistakes(settings, is_inferred=True))
    assert len(found) == ("path" in source.required)
    assert all(one.startswith(f"{settings.name}: there is no such folder") for one in found)
    assert source.explain_failure("something else") is None


def test_an_unknown_word_is_refused_with_all_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=", ".join(SOURCES)):
        load(config(tmp_path, "excel", {}))
    with pytest.raises(SettingsError, match=", ".join(SOURCES)):
        source_named("excel")


def test_no_source_needs_spark_before_it_is_opened() -> None:
    program = (
        "import sys; from stentor.pipeline.sources import SOURCES, source_named\n"
        "for word in SOURCES: source_named(word)\n"
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
