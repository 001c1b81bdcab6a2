"""Values, defaults and who set what, of MPIs that answer by hand; and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

import mpigraft
from mpigraft.cli import main
from mpigraft.cli import vars as command
from mpigraft.core.errors import LaunchFailed, MissingError, UsageError
from mpigraft.core.model import EnvRow, Level, MpiInstall, Scope
from mpigraft.discovery import inventory
from mpigraft.evidence.variables import query
from mpigraft.evidence.variables.query import Answer, Assignment, VariableEntry
from mpigraft.native import programs
from mpigraft.report import variable_summary
from mpigraft.request import RequestedSetting, RunSpec
from tests.builders.configuration import a_machine, a_transport, an_mpi
from tests.builders.messages import matches, shows
from tests.builders.variables import TRUTH, Tell, asker, control, ended, listed, performance

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/vars.json").read_text())
OPENMPI, MPICH, INTEL = (
    an_mpi(name) for name in ("openmpi@5.0.11", "mpich@5.0.2", "intel@2021.18.1")
)


def row(word: str, source: str = "--env") -> EnvRow:
    name, _, value = word.partition("=")
    return EnvRow(name, value, Scope.RANK, source)


def answer(mpi: MpiInstall, tell: Tell, *rows: EnvRow) -> dict[str, VariableEntry]:
    found = query.answer_variables(mpi, rows, asker(tell))
    return {entry.variable.name: entry for entry in found.entries}


def codes(mpi: MpiInstall, tell: Tell, *rows: EnvRow) -> list[str]:
    return [finding.code for finding in query.answer_variables(mpi, rows, asker(tell)).findings]


def openmpi(environment: dict[str, str], initialised: bool) -> bytes:
    """Two variables of the environment; a third that only MPI_Init brings."""
    limit = int(environment.get("OMPI_MCA_btl_sm_eager_limit", 4096))
    lines = [
        control("btl", environment.get("OMPI_MCA_btl", "")),
        control("btl_sm_eager_limit", limit),
        control("btl_vader_eager_limit", limit),
    ]
    lines += [control("late", 7, text="of MPI_Init")] if initialised else [performance("queue")]
    return listed(*lines, categories={"btl_sm_eager_limit": "btl_sm"})


# ------------------------------------------------------------------ values and defaults


def test_nothing_set_is_all_defaults() -> None:
    found = answer(OPENMPI, openmpi)
    assert len(found) == 5
    assert not any(e.differs or e.set_by for e in found.values())
    assert (found["btl"].value, found["btl"].default, found["btl"].after) == ("", "", "")
    assert found["late"].listed == ("after",)
    assert found["queue"].listed == ("before",)
    assert found["btl"].listed == ("before", "after")


def test_what_was_set_and_by_whom() -> None:
    rows = (row("OMPI_MCA_btl=self,sm", "transport ob1-sm"), row("OMPI_MCA_btl_sm_eager_limit=9"))
    found = answer(OPENMPI, openmpi, *rows)
    assert (found["btl"].value, found["btl"].default) == ("self,sm", "")
    assert found["btl"].set_by == (Assignment("self,sm", "transport ob1-sm"),)
    assert found["btl_sm_eager_limit"].set_by == (Assignment("9", "--env"),)
    synonym = found["btl_vader_eager_limit"]
    assert (synonym.differs, synonym.value, synonym.set_by) == (True, 9, ())


def test_what_a_module_sets_is_no_default() -> None:
    module = EnvRow("MPICH_EAGER", "9", Scope.RANK, "module")
    own = EnvRow("LD_LIBRARY_PATH", "/opt/mpi", Scope.RANK, "mpi")
    loaded = replace(MPICH, environment=(own, module))

    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        assert environment[own.name] == own.value
        return listed(control("MPIR_CVAR_EAGER", int(environment.get("MPICH_EAGER", 1))))

    entry = answer(loaded, tell)["MPIR_CVAR_EAGER"]
    assert (entry.value, entry.default, entry.set_by) == (9, 1, (Assignment("9", "module"),))


def test_parameter_files_are_named(tmp_path: Path) -> None:
    usual, forced = tmp_path / "params.conf", tmp_path / "override.conf"
    usual.write_text("# a comment = 1\n btl = ^openib \nbroken line\npml=\n", encoding="utf-8")
    forced.write_text("mtl = psm2\n", encoding="utf-8")

    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        files = environment.get("OMPI_MCA_mca_base_param_files", f"/nowhere.conf,{usual}")
        read = str(usual) in files
        return listed(
            control("mca_base_param_files", files),
            control("mca_base_override_param_file", str(forced)),
            control("btl", "^openib" if read else ""),
            control("pml", ""),
            control("mtl", "psm2"),
        )

    found = answer(OPENMPI, tell)
    assert found["btl"].differs
    assert found["btl"].set_by == (Assignment("^openib", str(usual)),)
    assert found["pml"].set_by == (Assignment("", str(usual)),)
    assert not found["mca_base_param_files"].differs
    assert found["mca_base_param_files"].default == found["mca_base_param_files"].value
    mtl = found["mtl"]  # cannot be left out, so its default is not known
    assert (mtl.default, mtl.differs, mtl.set_by) == (
        None,
        False,
        (Assignment("psm2", str(forced)),),
    )


def test_what_is_never_set_differs_from_nothing() -> None:
    """Another number in each run, and a truth that is neither."""
    count = iter(range(100))

    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        noise, truth = next(count), 150 if "OMPI_MCA_btl" in environment else 1
        return listed(
            control("btl", environment.get("OMPI_MCA_btl", "")),
            control("verbose", noise),
            control("multi", truth, choices=TRUTH),
        )

    found = answer(OPENMPI, tell, row("OMPI_MCA_btl=self"))
    assert found["btl"].differs
    assert (found["verbose"].differs, found["verbose"].default) == (False, None)
    assert not found["multi"].differs


def test_what_comes_with_init_is_no_change() -> None:
    """Ports and addresses: another each time."""
    count = iter(range(100))

    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        return listed(*([control("uri", f"tcp:{next(count)}")] if initialised else []))

    assert not answer(OPENMPI, tell)["uri"].differs


def test_an_mpi_that_does_not_start_alone_still_tells() -> None:
    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        return b"" if initialised and environment else listed(control("btl", 1))

    found = query.answer_variables(OPENMPI, (row("OMPI_MCA_btl=1"),), asker(tell))
    assert [f.code for f in found.findings] == ["no-init"]
    assert found.entries[0].listed == ("before",)


def test_an_mpi_that_tells_nothing_is_an_error() -> None:
    def ask(rows: object, initialise: bool) -> Any:
        return ended(b"", 127, b"---\nlibmpi.so.40: cannot open shared object file\n")

    with pytest.raises(LaunchFailed, match=r"variables of openmpi@5.0.11 cannot be read") as caught:
        query.answer_variables(OPENMPI, (), ask)
    assert matches(caught.value, "variables-unreadable", output="libmpi.so.40")


# ------------------------------------------------------------------ settings that do nothing


def test_a_name_that_no_variable_has() -> None:
    assert codes(OPENMPI, openmpi, row("OMPI_MCA_btl_smm=1")) == ["variable-unknown"]
    rows = (row("OMPI_MCA_laet=1"),)
    (misspelt,) = query.answer_variables(OPENMPI, rows, asker(openmpi)).findings
    assert matches(misspelt, "variable-unknown", near="did you mean OMPI_MCA_late")
    assert codes(OPENMPI, openmpi, row("FI_PROVIDER=tcp")) == []  # of another library


def test_a_value_that_was_not_taken() -> None:
    def deaf(environment: dict[str, str], initialised: bool) -> bytes:
        return listed(control("btl", 4), control("show", 0, choices=TRUTH))

    assert codes(OPENMPI, deaf, row("OMPI_MCA_btl=many")) == ["variable-not-taken"]
    assert codes(OPENMPI, deaf, row("OMPI_MCA_btl=4")) == []
    assert codes(OPENMPI, deaf, row("OMPI_MCA_show=false")) == []


def test_texts_of_mpich_are_defaults_whatever_is_set() -> None:
    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        return listed(control("MPIR_CVAR_CH4_NETMOD", ""), control("MPIR_CVAR_LIMIT", 1))

    rows = (row("MPIR_CVAR_CH4_NETMOD=ofi", "transport ofi"),)
    found = query.answer_variables(MPICH, rows, asker(tell))
    (finding,) = found.findings
    assert (finding.code, finding.level) == ("text-untold", Level.INFO)
    assert found.entries[0].set_by == (Assignment("ofi", "transport ofi"),)


@pytest.mark.parametrize(
    ("mpi", "name"),
    [
        (MPICH, "MPIR_CVAR_LIMIT"), (MPICH, "MPIR_PARAM_LIMIT"), (MPICH, "MPICH_LIMIT"),
        (INTEL, "I_MPI_LIMIT"), (INTEL, "MPIR_CVAR_LIMIT"), (INTEL, "I_MPI_ADJUST_LIMIT"),
    ],
)  # fmt: skip
def test_every_name_of_a_variable_is_known(mpi: MpiInstall, name: str) -> None:
    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        value = int(environment.get(name, 1))
        return listed(control("MPIR_CVAR_LIMIT", value, text="x @Alias:# I_MPI_ADJUST_LIMIT @Y"))

    entry = answer(mpi, tell, row(f"{name}=5"))["MPIR_CVAR_LIMIT"]
    assert (entry.value, entry.default, entry.set_by) == (5, 1, (Assignment("5", "--env"),))


def test_fatal_variables_are_summarised() -> None:
    def tell(environment: dict[str, str], initialised: bool) -> bytes:
        return listed(*(control(f"v{n}", None, fatal=True) for n in range(9)))

    (finding,) = query.answer_variables(OPENMPI, (), asker(tell)).findings
    assert matches(finding, "variable-fatal", variables=("v3", 5))


def test_settings_come_in_the_order_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "resolve_transport", lambda name, *_: a_transport(name))
    environ = {"OMPI_MCA_coll": "^han", "OMPI_MCA_pml": "ucx", "HOME": "/home", "FI_TOKEN": "x"}
    spec = RunSpec(transport="ob1-sm", settings=("A=1=2",))
    one = RequestedSetting(env=("A=2",), unset=("B",), files=("C=/c",), name="big")
    spec = replace(spec, setting=(one,))
    rows, dropped = query.variable_rows(OPENMPI, a_machine(OPENMPI), spec, environ)
    assert [(row.name, row.value) for row in rows if row.source == "setting big"] == [
        ("A", "2"), ("B", None), ("C", "/c"),
    ]  # fmt: skip
    rows = tuple(row for row in rows if row.source != "setting big")
    names = [(r.name, r.value) for r in rows]
    assert names == [("OMPI_MCA_coll", "^han"), ("ASKED", "ob1-sm"), ("A", "1=2")]
    assert [r.source.split()[0] for r in rows] == ["environment", "transport", "--env"]
    assert [f.code for f in dropped] == ["environment-dropped"]
    assert "OMPI_MCA_pml" in dropped[0].message
    with pytest.raises(UsageError, match="NAME=VALUE"):
        query.variable_rows(OPENMPI, a_machine(OPENMPI), RunSpec(settings=("A",)), environ)


# ------------------------------------------------------------------ the command


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two MPIs that answer by hand."""

    def other(environment: dict[str, str], initialised: bool) -> bytes:
        return listed(
            control("btl", environment.get("OMPI_MCA_btl", "tcp")), control("only_here", 3)
        )

    older = an_mpi("openmpi@4.1.4")
    tells: dict[str, Tell] = {OPENMPI.id: openmpi, older.id: other}
    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(OPENMPI, older))
    monkeypatch.setattr(programs, "choose_tool", lambda *_: Path("mpigraft-vars"))
    monkeypatch.setattr(query, "variable_asker", lambda _, mpi, __: asker(tells[mpi.id]))
    for name in ("OMPI_MCA_btl", "OMPI_ALLOW_RUN_AS_ROOT"):
        monkeypatch.delenv(name, raising=False)


def shown(*words: str) -> str:
    done = CliRunner().invoke(main.load(["vars"]), ["vars", *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return str(done.output)


@pytest.mark.usefixtures("two")
def test_a_summary() -> None:
    text = shown("--env", "OMPI_MCA_btl=self")
    assert text.index("openmpi@5.0.11") < text.index("openmpi@4.1.4")
    assert shows(text, "control 3", "before", "MPI_Init", "4 after")
    assert shows(text, "performance", "1 before", "MPI_Init", "0 after")
    assert shows(text, "= self", "default", "empty")
    assert shows(text, "= self", "default")
    assert "btl_sm (1)" in text
    assert shows(text, "spawn", "MPI_Comm_spawn", "works under", "prrte")
    assert shows(text, "MPI_Comm_spawn", "not work", "under srun", "--mpi=pmix")
    assert shows(shown("--mpi", "openmpi@5"), "none", "all have their defaults")


def test_a_version_has_single_spaces() -> None:
    listing = Answer("mpich@5.0.2", "MPICH Version:      5.0.2", (), ())
    assert shows(next(variable_summary(listing, 80)), "mpich@5.0.2 MPICH Version", "5.0.2")


@pytest.mark.usefixtures("two")
def test_a_filter_shows_each_in_full() -> None:
    text = shown("--mpi", "openmpi@5", "--filter", "BTL_SM")
    assert shows(text, "btl_sm_eager_limit", "= 4096")
    assert shows(text, "control", "user", "btl_sm")
    assert shows(text, "btl_sm_eager_limit")
    assert "vader" not in text
    late = shown("--mpi", "openmpi@5", "--filter", "of mpi_init")
    assert "late = 7" in late
    assert shows(late, "listed after", "MPI_Init", "only")
    assert shows(shown("--mpi", "openmpi@5", "--filter", "nothing of the kind"), "none has that")
    assert shows(shown("--mpi", "openmpi@5", "--filter", "btll"), "did you mean btl")
    assert "did you mean" not in text
    assert shown("--mpi", "openmpi@5", "--filter", "e").count(" = ") == 5


@pytest.mark.usefixtures("two")
def test_two_mpis_differ() -> None:
    text = shown("--diff", "openmpi@4.1.4", "openmpi@5.0.11")
    assert shows(text, "only in", "openmpi@4.1.4", "1 only_here")
    assert shows(text, "only in", "openmpi@5.0.11", "4")
    assert shows(text, "in both: 1", "another value: 1", "btl", "tcp", "(empty)")
    with pytest.raises(UsageError, match="several MPIs"):
        shown("--diff", "openmpi", "openmpi@5")
    with pytest.raises(UsageError, match="excludes"):
        shown("--diff", "openmpi@4", "openmpi@5", "--mpi", "openmpi")


@pytest.mark.usefixtures("two")
def test_the_document_is_as_its_schema_says() -> None:
    document = json.loads(shown("--json", "--env", "OMPI_MCA_btl=self"))
    jsonschema.validate(document, SCHEMA)
    first, second = document["mpis"]
    assert (first["id"], second["id"].split("@")[1]) == (OPENMPI.id, "4.1.4")
    btl = next(v for v in first["variables"] if v["name"] == "btl")
    assert (btl["value"], btl["default"], btl["differs"]) == ("self", "", True)
    assert btl["set_by"] == [{"value": "self", "source": "--env"}]


@pytest.mark.usefixtures("two")
def test_one_that_refuses_is_left_out_unless_it_was_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = "it has no such transport"

    def of(machine: object, mpi: MpiInstall, *_: object) -> Answer:
        if mpi is OPENMPI:
            raise MissingError(why)
        return Answer(mpi.id, "1", (), ())

    monkeypatch.setattr(command, "_answer", of)
    text = shown("--transport", "ucx")
    assert shows(text, "left out", why)
    assert shows(text, "openmpi@4.1.4")
    with pytest.raises(MissingError):
        shown("--transport", "ucx", "--mpi", "openmpi@5")


@pytest.mark.usefixtures("two")
def test_values_of_secrets_are_struck_out(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "planted-value-0"
    monkeypatch.setenv("GITHUB_TOKEN", secret)
    monkeypatch.setenv("OMPI_MCA_btl_base", secret)
    for form in ("--json", "--filter=btl"):
        assert secret not in shown("--env", f"OMPI_MCA_btl={secret}", form)
