"""`mpigraft case`: the list, one file, and the document."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from mpigraft.cli.main import main
from mpigraft.knowledge import case_names, case_text
from tests.builders.messages import shows

SCHEMA = json.loads(files("mpigraft").joinpath("report/schemas/case.json").read_text())


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["case", *words])
    return int(ended.value.code or 0)


def test_the_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    printed = capsys.readouterr().out
    assert [name for name in case_names() if f"\n{name} " not in printed] == []
    assert shows(printed, "mpigraft case NAME", "NAME.toml")


def test_a_case_is_printed_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("castep") == 0
    assert capsys.readouterr().out == case_text("castep")


@pytest.mark.parametrize("words", [(), ("vasp",)])
def test_the_document_follows_its_schema(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert [case["name"] for case in document["cases"]] == [*(words or case_names())]


def test_an_unknown_case_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("casetp") == 2
    assert "castep" in capsys.readouterr().err


def test_a_case_whose_program_is_not_there_says_so(
    tmp_path: Path, fresh_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's first step, with nothing edited yet."""
    assert fresh_home
    file = tmp_path / "a b" / "castep.toml"
    file.parent.mkdir()
    file.write_text(case_text("castep"), encoding="utf-8")
    os.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["bench", str(file), "--layout", "1x2", "--dry-run"])
    assert ended.value.code in {1, 2, 3}
    assert "castep" in capsys.readouterr().err
