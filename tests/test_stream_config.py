"""One file says what a stream runs; every mistake in it is told at once, with its place."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.errors import SettingsError
from stentor.model import Kind
from stentor.pipeline.config.explaining import explanation
from stentor.pipeline.config.file import KafkaOut, load
from stentor.pipeline.config.sections import span_of

EXAMPLE = Path(__file__).parents[1] / "examples" / "stentor.toml"
LEAST = """
[[source]]
kind = "events"
format = "json"
path = "in"
[tables]
path = "out"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "stentor.toml"
    file.write_text(text, "utf-8")
    return file


def mistakes(folder: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(written(folder, text))
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_the_example_has_every_key_and_loads() -> None:
    config = load(EXAMPLE)
    assert [(one.format, one.kind) for one in config.sources] == [
        ("json", "events"),
        ("parquet", "changes"),
        ("kafka", "records"),
    ]
    assert config.sources[0].columns.time == "sent"
    assert config.sources[1].columns.time == "time"
    assert config.sources[2].options == {"failOnDataLoss": "false"}
    assert config.path == EXAMPLE.parent / "pipeline"
    assert config.schema is not None
    assert config.schema.kind("size") is Kind.NUMBER
    assert config.settings.has_order
    assert config.settings.top == 5
    assert config.settings.retention == timedelta(days=7)
    assert config.settings.most_ahead == timedelta(hours=1)
    assert config.settings.local_cache is None
    assert config.trigger == {"processingTime": "2000 milliseconds"}
    assert config.kafka == KafkaOut(topic="deliveries", servers="localhost:9092")
    assert config.uses_kafka


def test_a_file_is_read_without_spark() -> None:
    program = f"import sys; from stentor.pipeline.config.file import load; load({str(EXAMPLE)!r})"
    program += "; import stentor.pipeline.config.explaining"
    program += "; sys.exit('pyspark' in sys.modules or 'deltalake' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_least_file_leaves_everything_else_open(tmp_path: Path) -> None:
    config = load(written(tmp_path, LEAST))
    assert config.sources[0].path == str(tmp_path / "in")
    assert config.path == tmp_path / "out"
    assert config.schema is None
    assert config.trigger == {}
    assert not config.settings.has_order
    assert not config.uses_kafka


def test_a_local_cache_stands_beside_the_file_unless_it_says_where(tmp_path: Path) -> None:
    for place, expected in (("copies", str(tmp_path / "copies")), ("/fast/disk", "/fast/disk")):
        config = load(written(tmp_path, f'{LEAST}local_cache = "{place}"\n'))
        assert config.settings.local_cache == expected
        assert f"its own copy, in {expected}" in dict(explanation(config))["Plan"]


def test_a_limit_on_wrong_clocks_is_explained(tmp_path: Path) -> None:
    text = LEAST + '[order]\ntime = "sent"\n[limits]\nahead = "90 minutes"\n'
    config = load(written(tmp_path, text))
    assert config.settings.most_ahead == timedelta(minutes=90)
    assert dict(explanation(config))["Time"].endswith(
        "a record more than 90 minutes ahead of its batch is rejected"
    )


def test_a_remote_path_stays_as_it_is(tmp_path: Path) -> None:
    config = load(written(tmp_path, LEAST.replace('"in"', '"s3://bucket/in"')))
    assert config.sources[0].path == "s3://bucket/in"


def test_every_mistake_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path,
        """
        [[source]]
        format = "jsn"
        kind = "events"
        pth = "x"
        [[source]]
        format = "kafka"
        kind = "event"
        path = "x"
        columns = { idd = "x", id = 5 }
        [schema]
        price = "nubmer"
        [index]
        name = "scna"
        top = 0
        [plan]
        name = "replicated"
        shards = 3
        [limits]
        rejected = 2
        [trigger]
        interval = "2 moons"
        [retention]
        files = 7
        [merge]
        share = "x"
        [tabels]
        """,
    )
    expected = [
        '[[source]] 1, format: expected one of json, csv, parquet, delta, kafka, got "jsn"; did',
        "[[source]] 1, pth: there is no such key; did you mean path?",
        '[[source]] 2, kind: expected one of events, changes, records, got "event"; did you',
        "[[source]] 2, columns, id: expected a text, got 5",
        "[[source]] 2, columns, idd: there is no such key; did you mean id?",
        "[[source]] 2, topic: missing; expected its name",
        "[[source]] 2, servers: missing; expected host:port",
        "[[source]] 2, path: a source of format kafka has none",
        "[schema], price: expected one of number, string, boolean, timestamp, point, number",
        "[tables], path: missing; expected the folder of the tables",
        "[index], name: no index 'scna'; did you mean 'scan'?",
        "[index], top: expected a whole number of at least 1, got 0",
        '[plan], shards: a replicated plan has one; choose name = "sharded"',
        "[limits], rejected: expected a share, 0 to 1, got 2",
        '[trigger], interval: expected a span like "7 days"',
        '[retention], files: expected a span like "7 days"',
        '[merge], share: expected a share, 0 to 1, got "x"',
        "tabels: there is no such key; did you mean tables?",
    ]
    assert len(found) == len(expected)
    for start in expected:
        assert sum(line.startswith(start) for line in found) == 1, start


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("[tables]", "[trigger]\ninterval = '1 s'\navailable_now = true\n[tables]"),
            "exclude each",
        ),
        (("[[source]]", "[source]"), "write it with two brackets"),
        (('kind = "events"', ""), "[[source]] 1, kind: missing; expected events, changes, records"),
        (('path = "in"', 'path = "in"\ntopic = "t"'), "topic: a source of format json has none"),
        (('path = "in"', 'path = "in"\ndrop = ["x"]'), "drop: of Parquet and Delta only"),
        (('path = "in"', 'path = "in"\nmax_files = true'), "expected a whole number of at least 1"),
        (
            ("[tables]", "[index]\nplane = true\n[tables]"),
            "plane: declare the attributes in [schema]",
        ),
        (("[tables]", "[schema]\n[tables]"), "[schema]: expected attributes and their types"),
        (("[tables]", "[kafka]\n[tables]"), "[kafka], topic: missing"),
        (("[tables]", "[[tables]]"), "[tables]: expected a table, got"),
        (("[tables]", "[[source]]\nkind='events'\nformat='json'\npath='in'\n[tables]"), "twice"),
        (
            (
                "[tables]",
                "[[source]]\nkind='events'\nformat='kafka'\ntopic='t'\nservers='s:1'\n[tables]",
            ),
            "[schema]: missing; expected because kafka:t cannot be looked into",
        ),
        (
            (
                "[tables]",
                "[[source]]\nkind='changes'\nformat='csv'\npath='c'\ncolumns={order='n'}\n[tables]",
            ),
            "all sources name a column for the order or none does; json ",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(
    tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    found = mistakes(tmp_path, LEAST.replace(*change))
    assert any(expected in line for line in found), found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"x = ", "is not TOML: Invalid value"),
        (b"\xff", "is not UTF-8"),
        (None, "cannot read .*: No such file"),
    ],
)
def test_a_file_that_is_no_toml_says_so(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    file = tmp_path / "stentor.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=expected):
        load(file)


@given(
    st.integers(0, 10_000), st.sampled_from(["ms", "s", "second", "minute", "hour", "day", "week"])
)
def test_spans_are_numbers_and_units(count: int, unit: str) -> None:
    one = span_of(f"1 {unit}")
    assert one is not None
    plural = unit if len(unit) < 3 else f"{unit}s"
    assert span_of(f"{count} {plural}") == count * one
    assert span_of(f"{count}") is None
    assert span_of(f"{count} moons") is None
