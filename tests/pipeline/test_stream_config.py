"""One file says what a stream runs; every mistake in it is told at once, with its place."""

import bz2
import gzip
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.errors import SettingsError
from stentor.model import Kind
from stentor.pipeline.config.explain import explanation
from stentor.pipeline.config.explain import mistakes as mistakes_of
from stentor.pipeline.config.file import KafkaOut, load
from stentor.pipeline.config.reader import span_of
from stentor.pipeline.config.samples import Sample, samples
from stentor.pipeline.secrets import resolved, without_secrets
from stentor.pipeline.stream.settings import StreamSettings

EXAMPLE = Path(__file__).parents[2] / "examples" / "stentor.toml"
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
    program += "; import stentor.pipeline.config.explain"
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


def test_a_record_is_at_most_a_day_ahead_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    text = LEAST + '[order]\ntime = "sent"\n'
    assert load(written(tmp_path, text)).settings.most_ahead == timedelta(days=1)
    any_time = load(written(tmp_path, text + '[limits]\nahead = "any"\n'))
    assert any_time.settings.most_ahead is None
    assert "ahead" not in dict(explanation(any_time))["Time"]


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


@pytest.mark.parametrize(
    "address", ["ftp://b/out", "file:/out", "file:///out", "dbfs:/out", "gs:x"]
)
def test_an_address_elsewhere_is_no_folder_of_the_pipeline(tmp_path: Path, address: str) -> None:
    for key in ("path", "checkpoint", "local_cache"):
        tables = LEAST.partition("[tables]")[0] + "[tables]\n"
        tables += f'{key} = "{address}"\n' + ("" if key == "path" else 'path = "out"\n')
        (found,) = mistakes(tmp_path, tables)
        assert found.startswith(f"[tables], {key}: {address} is an address of the scheme")
    with pytest.raises(SettingsError, match=r"local_cache: .* is an address of the scheme"):
        StreamSettings(local_cache=address)
    config = load(written(tmp_path, LEAST.replace('"in"', f'"{address}"')))
    assert config.sources[0].path == address  # what Spark reads may lie anywhere
    assert not list(tmp_path.glob("*:*"))


def test_tables_may_lie_in_a_store_and_copies_may_not(tmp_path: Path) -> None:
    tables = LEAST.partition("[tables]")[0] + '[tables]\npath = "s3a://b/out"\n'
    config = load(written(tmp_path, f"{tables}[storage]\naws_region = 'here'\n"))
    assert str(config.path) == "s3://b/out"
    assert config.settings.storage == {"aws_region": "here"}
    assert config.uses_s3
    (found,) = mistakes(tmp_path, f'{tables}local_cache = "s3://b/copies"\n')
    assert found.startswith("[tables], local_cache: s3://b/copies is an address of the scheme")


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
        "[schema], price: expected one of number, string, boolean, timestamp, point, set, number",
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
        (
            ("[tables]", "[order]\nby = 'when'\n[schema]\nwhen = 'number'\n[tables]"),
            "it holds the order, so that no subscription could ask for it",
        ),
        (
            ("[tables]", "columns = {until = 'ends'}\n[schema]\nends = 'timestamp'\n[tables]"),
            "[schema], ends: in json ",
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


def sampled(folder: Path, of: str, rest: str = "") -> Sample:
    text = LEAST.replace('"json"', f'"{of}"').replace("[tables]", f"{rest}\n[tables]")
    (found,) = samples(load(written(folder, text)))
    return found


def test_a_check_looks_at_the_first_records(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [f'{{"event_id": "e{n}", "price": {n}}}' for n in range(20)]
    (folder / "0.jsonl").write_text("\n".join([*lines, "nonsense", ""]))
    found = sampled(tmp_path, "json")
    assert (found.records, found.rejected) == (21, 21)
    assert found.mistake is not None
    assert "20 because: id: every record needs one" in found.mistake
    found = sampled(tmp_path, "json", 'columns = { id = "event_id" }')
    assert (found.records, found.rejected, found.mistake) == (21, 1, None)
    assert sampled(tmp_path, "json", "most_rejected = 1.0").mistake is None
    typed = sampled(tmp_path, "json", 'columns = { id = "event_id" }\n[schema]\nprice = "string"')
    assert typed.rejected == 21


def test_a_check_looks_at_csv_and_parquet_too(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows = [f"e{n},{n},2026-01-0{n % 9 + 1}" for n in range(20)]
    (folder / "0.csv").write_text("\n".join(["id,price,until", *rows, "bad"]))
    (folder / "1.csv").write_text("price,id\n5,e\n")
    found = sampled(tmp_path, "csv")
    assert (found.records, found.rejected, found.mistake) == (22, 1, None)
    (folder / "0.csv").unlink()
    (folder / "1.csv").unlink()
    pq.write_table(pa.table({"key": range(20), "price": [1.5] * 20}), folder / "0.parquet")
    (folder / "1.parquet").write_bytes(b"none")
    found = sampled(tmp_path, "parquet")
    assert (found.records, found.rejected) == (21, 21)
    found = sampled(tmp_path, "parquet", 'columns = { id = "key" }')
    assert (found.records, found.rejected) == (21, 1)
    assert "the file cannot be read" in found.text


CSV = "id;text\n" + "".join(f"e{n};'a;é{n}'\n" for n in range(20))
LINES = "".join(f'{{"id": "é{n}", "text": "é"}}\n' for n in range(20))


@pytest.mark.parametrize(
    ("of", "name", "data", "options"),
    [
        ("csv", "0.csv", CSV.encode(), "sep = ';', quote = \"'\""),
        ("csv", "0.csv", CSV.encode("latin-1"), "Sep = ';', quote = \"'\", encoding = 'latin1'"),
        ("json", "0.jsonl.bz2", bz2.compress(LINES.encode()), ""),
        ("json", "0.jsonl.gz", gzip.compress(LINES.encode()), ""),
        ("json", "0.jsonl", LINES.encode("utf-16-le"), "encoding = 'UTF-16LE'"),
    ],
)  # fmt: skip
def test_a_check_reads_what_spark_is_told_to_read(
    tmp_path: Path, of: str, name: str, data: bytes, options: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_bytes(data)
    found = sampled(tmp_path, of, f'options = {{ {options} }}\n[schema]\ntext = "string"')
    assert (found.records, found.rejected) == (20, 0), found.text


@pytest.mark.parametrize(
    ("name", "options"),
    [("0.jsonl.zst", ""), ("0.jsonl", "pathGlobFilter = '*.json'"), ("0.jsonl", "lineSep = '|'")],
)
def test_a_check_says_nothing_of_what_only_spark_can_read(
    tmp_path: Path, name: str, options: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_bytes(b"nonsense\n" * 20)
    text = LEAST.replace("[tables]", f"options = {{ {options} }}\n[tables]")
    assert list(samples(load(written(tmp_path, text)))) == []


def test_a_check_asks_parquet_for_the_order_too(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows = {"id": range(20), "price": [1.5] * 20, "brand": pa.nulls(20, pa.int32())}
    pq.write_table(pa.table(rows | {"n": range(20)}), folder / "0.parquet")
    schema = '[schema]\nprice = "number"\nbrand = "string"\n'
    assert sampled(tmp_path, "parquet", schema + '[order]\nby = "n"').rejected == 0
    found = sampled(tmp_path, "parquet", schema + '[order]\nby = "m"')
    assert (found.records, found.rejected) == (20, 20)
    assert found.reasons == ["20 because: m: every record needs one, because it says the order"]


def test_a_check_tells_of_columns_that_no_parquet_file_has(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    text = LEAST.replace('"json"', '"parquet"')
    for name, missing in (
        ('[order]\nby = "n"\ntime = "whenn"', "'whenn', which holds the time"),
        ('[order]\nby = "m"', "'m', which holds the order"),
        ('columns = { until = "ends" }', "'ends', which holds the until"),
        ('drop = ["colour"]', "'colour' to drop"),
    ):
        config = load(written(tmp_path, text.replace("[tables]", f"{name}\n[tables]")))
        pq.write_table(pa.table({"id": [1], "n": [1]}), folder / "0.parquet")
        found = [one for one in mistakes_of(config) if "column" in one]
        assert found == [f"{config.sources[0].name}: there is no column {missing}; it has id, n"]
        # A column that only a later file has is there.
        later = {"id": [1], "whenn": [1], "m": [1], "ends": [1], "colour": [1]}
        pq.write_table(pa.table(later), folder / "1.parquet")
        assert not [one for one in mistakes_of(config) if "column" in one]
        (folder / "1.parquet").unlink()


def test_a_csv_file_always_has_a_header(tmp_path: Path) -> None:
    text = LEAST.replace('"json"', '"csv"').replace(
        "[tables]", 'options = { header = "false" }\n[tables]'
    )
    (found,) = mistakes(tmp_path, text)
    assert "[[source]] 1, options, header: every file of CSV has a header" in found


def test_a_check_of_changes_reads_their_expressions(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    good, bad = '{"id": "a", "expression": "price < 3"}', '{"id": "b", "expression": "price <"}'
    (folder / "0.jsonl").write_text(f"{good}\n{bad}\n")
    schema = '[schema]\nprice = "number"'
    text = LEAST.replace('"events"', '"changes"').replace("[tables]", f"{schema}\n[tables]")
    (found,) = samples(load(written(tmp_path, text)))
    assert (found.records, found.rejected) == (2, 1)


SECRET = "kafka.sasl.jaas.config"


def test_kafka_out_takes_options_and_secrets_are_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("from a file\n")
    options = (
        f'options = {{ "{SECRET}" = "x ${{BROKER_KEY}} ${{file:password}} $${{y}}", a = true }}'
    )
    kafka = f'[kafka]\ntopic = "t"\nservers = "h:1"\n{options}\n'
    config = load(written(tmp_path, LEAST + kafka))
    assert config.kafka is not None
    missing = [one for one in mistakes_of(config) if "BROKER_KEY" in one]
    assert missing == [
        f"[kafka], options, {SECRET}: the environment has no BROKER_KEY; export it first"
    ]
    monkeypatch.setenv("BROKER_KEY", "hunter2")
    assert not [one for one in mistakes_of(config) if "BROKER_KEY" in one]
    assert resolved(config.kafka.options) == {SECRET: "x hunter2 from a file ${y}", "a": "true"}
    everything = f"{config} {explanation(config)} {mistakes_of(config)}"
    assert "hunter2" not in everything
    assert "from a file" not in everything
    assert without_secrets("refused: hunter2, from a file") == "refused: …, …"
    for wrong in ("${file:nowhere}", "${a b}"):
        with pytest.raises(SettingsError, match="a: "):
            resolved({"a": wrong})
    for name in ("topic", "Topic", "kafka.bootstrap.servers"):
        (found,) = mistakes(tmp_path, LEAST + kafka.replace("a = true", f'"{name}" = "u"'))
        assert found == f"[kafka], options: {name} has a key of its own in [kafka]"


def test_no_line_of_a_secret_is_shown(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("-- BEGIN --\nabcdef\n  ghijkl\n-- END --\n")
    assert "abcdef" in resolved({"a": f"${{file:{tmp_path / 'key.pem'}}}"})["a"]
    assert without_secrets("refused: abcdef and ghijkl") == "refused: … and …"


@pytest.mark.parametrize("option", ["subscribe", "Subscribe", '"kafka.bootstrap.servers"'])
def test_what_has_a_key_is_no_option_of_a_topic(tmp_path: Path, option: str) -> None:
    source = 'kind = "changes"\nformat = "kafka"\ntopic = "t"\nservers = "h:1"\n'
    text = f'[[source]]\n{source}options = {{ {option} = "u" }}\n[tables]\npath = "out"\n'
    (found,) = mistakes(tmp_path, text)
    assert "has a key of its own in [[source]]" in found
