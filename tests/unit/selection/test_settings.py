"""Arms of settings: which configurations have one, and what their keys are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Configuration, EnvRow, MpiInstall, Scope, Transport
from mpigraft.request.options import COMMAND_LINE
from mpigraft.request.settings import RequestedSetting
from mpigraft.request.spec import spec_from
from mpigraft.selection.configurations import choose_baseline
from mpigraft.selection.settings import combinations, with_setting, with_settings
from tests.builders.configuration import a_configuration, a_transport, an_mpi

OPENMPI, MPICH = an_mpi("openmpi@5.0.11"), an_mpi("mpich@5.0.2")


def forcing(name: str, **rows: str) -> Transport:
    env = tuple(EnvRow(n, v, Scope.RANK, "transport") for n, v in rows.items())
    return replace(a_transport(name), env=env)


def configuration(mpi: MpiInstall, transport: Transport) -> Configuration:
    key = f"{mpi.id}/{transport.name}"
    return replace(a_configuration(mpi), key=key, id=key, transport=transport)


SM = configuration(OPENMPI, forcing("ob1-sm", OMPI_MCA_pml="ob1"))
UCX = configuration(OPENMPI, forcing("ucx", OMPI_MCA_pml="ucx"))
OFI = configuration(MPICH, forcing("shm-ofi-tcp", FI_PROVIDER="tcp"))
ALL = (SM, UCX, OFI)


def settings(*words: str) -> tuple[RequestedSetting, ...]:
    return spec_from({"setting": list(words)}, COMMAND_LINE).setting


def arms(*words: str) -> list[str]:
    return [one.id for one in with_settings(settings(*words), ALL)[0] if one.setting]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a:UCX_RNDV_THRESH=1", {"openmpi@5.0.11/ucx+a"}),
        ("a:FI_TCP_ZEROCOPY_SIZE=1", {"mpich@5.0.2/shm-ofi-tcp+a"}),
        ("a:OMPI_MCA_smsc=^cma", {"openmpi@5.0.11/ob1-sm+a", "openmpi@5.0.11/ucx+a"}),
        ("a:MPIR_CVAR_X=1", {"mpich@5.0.2/shm-ofi-tcp+a"}),
        ("a:MALLOC_ARENA_MAX=1", {f"{one.id}+a" for one in ALL}),
        ("a={env=['A=1'], for=['openmpi', 'ucx']}", {"openmpi@5.0.11/ucx+a"}),
        ("a={env=['A=1'], for=['mpich@5']}", {"mpich@5.0.2/shm-ofi-tcp+a"}),
        ("a={launcher=['--mca', 'x', 'y'], for=['ob1-sm']}", {"openmpi@5.0.11/ob1-sm+a"}),
    ],
)
def test_a_setting_is_measured_where_its_variables_are_read(word: str, expected: set[str]) -> None:
    assert set(arms(word)) == expected


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("a:OMPI_MCA_pml=cm", "changes OMPI_MCA_pml"),
        ("a:-OMPI_MCA_pml", "changes OMPI_MCA_pml"),
        ("a:I_MPI_X=1", "reads none of its variables"),
        ("a={env=['A=1'], for=['intel']}", "it is for intel"),
        ("a:FI_PROVIDER=tcp", "has these values already"),
    ],
)
def test_one_that_no_configuration_takes_is_refused(word: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        arms(word)
    assert caught.value.code == "setting-unmatched"
    assert why in caught.value.message


def test_contents_make_the_key_and_names_do_not(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("1\n")
    rule = f"a={{files={{R='{tmp_path}/r'}}, for=['ob1-sm']}}"
    keys = {with_settings(settings(rule), (SM,))[0][1].key}
    (tmp_path / "r").write_text("2\n")
    keys.add(with_settings(settings(rule), (SM,))[0][1].key)
    for word in ("a:A=1", "a:A=2", "a:B=1", "a:-A", "a={launcher=['--mca', 'x', 'y']}"):
        keys.add(with_settings(settings(word), (SM,))[0][1].key)
    assert len(keys) == 7
    made, skipped = with_settings(settings("a:A=1", "b:A=1"), (SM,))
    assert [one.id for one in made] == [SM.id, f"{SM.id}+a"]
    ((left_out, why),) = skipped
    assert (left_out, why.split()[-1]) == (f"{SM.id}+b", f"{SM.id}+a")


def test_settings_are_combined_where_they_have_no_variable_in_common() -> None:
    three = settings("a:A=1", "b:B=1", "c:A=2")
    assert [one.name for one in combinations(three)] == ["a", "b", "c", "a+b", "b+c"]
    made, _ = with_settings(three, (SM,), combine=True)
    assert {row.name: row.value for row in made[-1].rows}.items() >= {"A": "2", "B": "1"}.items()
    assert len({one.key for one in made}) == 6
    apart = settings("a={env=['A=1'], for=['openmpi']}", "b={env=['B=1'], for=['mpich']}")
    made, _ = with_settings(apart, ALL, combine=True)  # no configuration takes both
    assert {one.setting.name for one in made if one.setting} == {"a", "b"}


def test_an_arm_knows_its_plain_one_and_wins_over_its_variables() -> None:
    row = EnvRow("A", "0", Scope.RANK, "user")
    plain = replace(SM, environment=(row,))
    _, arm = with_settings(settings("a:A=1"), (plain,))[0]
    assert arm.setting is not None
    assert arm.setting.plain == plain.key
    assert arm.rows[-1] == EnvRow("A", "1", Scope.RANK, "setting a")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda _: None, "cannot be read"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "is not text"),
        (lambda path: path.write_bytes(b"x" * ((1 << 20) + 1)), "larger than 1 MiB"),
        (lambda path: path.mkdir(), "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_copied_is_refused(
    tmp_path: Path, make: Callable[[Path], object], problem: str
) -> None:
    make(tmp_path / "r")
    with pytest.raises(UsageError) as caught:
        with_settings(settings(f"a={{files={{R='{tmp_path}/r'}}}}"), ALL)
    assert problem in caught.value.message


def test_the_baseline_is_a_plain_arm_unless_it_is_named() -> None:
    made, _ = with_settings(settings("a:OMPI_MCA_smsc=^cma"), (SM,))
    assert choose_baseline(made, "").id == SM.id
    assert choose_baseline(made, "openmpi").id == SM.id
    assert choose_baseline(made, f"{SM.id}+a").id == f"{SM.id}+a"


def test_a_job_has_one_setting() -> None:
    assert with_setting((), SM) is SM
    assert with_setting(settings("a:A=1"), SM).id == f"{SM.id}+a"
    chosen = replace(SM, transport=None)  # its MPI chooses: any library may read it
    assert with_setting(settings("a:UCX_X=1"), chosen).setting is not None
    with pytest.raises(UsageError) as caught:
        with_setting(settings("a:A=1", "b:B=1"), SM)
    assert caught.value.code == "setting-one"
