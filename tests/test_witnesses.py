"""What earlier versions saved opens, and answers as it did then."""

import json
import zipfile
from pathlib import Path

import pytest

import stentor
from tests.programs.witness import INDEXES, answers, filled

WITNESSES = sorted((Path(__file__).parent / "witnesses").glob("*.zip"))


def test_there_are_witnesses() -> None:
    assert WITNESSES


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("witness", WITNESSES, ids=lambda path: path.stem)
def test_a_saved_engine_answers_as_it_did(witness: Path, index: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(witness) as packed:
        packed.extractall(tmp_path)
    engine = stentor.Engine.open(tmp_path / index)
    assert json.loads(json.dumps(answers(engine))) == json.loads(
        (tmp_path / f"{index}.json").read_text()
    )


@pytest.mark.filterwarnings("ignore::stentor.errors.NeverMatchesWarning")
def test_the_answers_of_a_witness_are_those_of_an_engine_that_was_never_saved() -> None:
    assert answers(filled("scan")) == answers(filled("be_star_tree"))
