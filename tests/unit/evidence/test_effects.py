"""Which variables of a setting are in effect, by lists and logs as libraries print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    Configuration,
    EnvRow,
    MpiInstall,
    Scope,
    Setting,
    SettingEffect,
    SettingFile,
    SettingState,
)
from mpigraft.core.process.command import Completed
from mpigraft.evidence.variables import effects
from mpigraft.evidence.variables.effects import (
    effect_findings,
    refuse_unknown_names,
    setting_effects,
)
from mpigraft.launch.launch_request import IN_GUEST
from tests.builders.configuration import a_configuration, an_mpi
from tests.builders.messages import matches
from tests.builders.variables import control, ended, listed

NEAR = "did you mean {}? "
OPENMPI, MPICH = an_mpi("openmpi@5.0.11"), an_mpi("mpich@5.0.2")
# As UCX 1.20.1 and libfabric 2.x print them, seen with the MPIs of these versions.
UCX = b"""\
[1795959688.855527] [vm:5155 :0] parser.c:2355 UCX  WARN  unused environment variable: UCX_RNDV_TRESH (maybe: UCX_RNDV_THRESH?)
[1795959688.855533] [vm:5155 :0] parser.c:2364 UCX  INFO  UCX_* env variables: UCX_LOG_LEVEL=info UCX_RNDV_THRESH=65k
[1795959688.782702] [vm:5150 :0] parser.c:1340 UCX  ERROR Invalid value for ZCOPY_THRESH: 'abc'. Expected: memory units: <number>[b|kb|mb|gb]
"""  # noqa: E501
FABRIC = b"""\
libfabric:5028:1795959670::core:core:fi_param_get_():372<info> variable mr_cache_max_size=<not set>
libfabric:5028:1795959670::core:core:fi_param_get_():381<info> read string var provider=tcp
libfabric:5028:1795959670::tcp:core:fi_param_get_():395<info> read int var zerocopy_size=11
"""


INTEL = b"""\
[0] MPI startup(): I_MPI_ADJUST_BCAST=1
[0] MPI startup(): I_MPI_FOO environment variable is not supported.
[0] MPI startup(): I_MPI_ADJUST_ALREDUCE environment variable is not supported.
[0] MPI startup(): Similar variables:
[0] \t I_MPI_ADJUST_ALLREDUCE
[0] \t I_MPI_ADJUST_IALLREDUCE
"""


def configuration(mpi: MpiInstall, *files: SettingFile, **values: str | None) -> Configuration:
    rows = tuple(EnvRow(n, v, Scope.RANK, "setting s") for n, v in values.items())
    return replace(a_configuration(mpi), setting=Setting("s", rows, files))


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let an MPI answer: variables by what was set, and a log after MPI_Init."""

    def say(variables: Mapping[str, str | int], log: bytes = b"", held: str = "OMPI_MCA_") -> None:
        def ask(rows: Sequence[EnvRow], initialise: bool) -> Completed:
            given = {row.name.removeprefix(held): row.value for row in rows}
            lines = [control(n, type(v)(given.get(n) or v)) for n, v in variables.items()]
            return ended(listed(*lines), stderr=log if initialise else b"")

        monkeypatch.setattr(effects, "choose_tool", lambda *_: Path("mpigraft-vars"))
        monkeypatch.setattr(effects, "variable_asker", lambda *_: ask)

    return say


def states(one: Configuration) -> dict[str, SettingState]:
    return {effect.variable: effect.state for effect in setting_effects(one, {})}


def test_a_variable_that_the_mpi_holds_is_in_effect(say: Callable[..., None]) -> None:
    say({"smsc": "", "rules": ""})
    one = configuration(
        OPENMPI, SettingFile("OMPI_MCA_rules", "/r", "1"), OMPI_MCA_smsc="^cma", OMPI_MCA_smcs="x"
    )
    assert states(one) == {
        "OMPI_MCA_smsc": SettingState.IN_EFFECT,
        "OMPI_MCA_smcs": SettingState.UNKNOWN,
        "OMPI_MCA_rules": SettingState.READ,  # its name; whether its rules were taken is not shown
    }
    assert setting_effects(one, {})[0].sign.endswith("= ^cma")


def test_a_value_that_the_mpi_does_not_hold_is_not_taken(say: Callable[..., None]) -> None:
    say({"smsc": "cma"}, held="NOBODY_")
    assert states(configuration(OPENMPI, OMPI_MCA_smsc="^cma")) == {
        "OMPI_MCA_smsc": SettingState.REFUSED
    }


@pytest.mark.parametrize(
    ("mpi", "word", "held", "state"),
    [
        (OPENMPI, "abc", 0, SettingState.REFUSED),  # so it does; the default is 4096
        (OPENMPI, "-5", 2**64 - 5, SettingState.REFUSED),
        (OPENMPI, "64k", 65536, SettingState.IN_EFFECT),
        (OPENMPI, "0x40", 64, SettingState.IN_EFFECT),
        (OPENMPI, "64", 64, SettingState.IN_EFFECT),
        (OPENMPI, "4096", 4096, SettingState.IN_EFFECT),  # the default, said again
        (MPICH, "binomial", 1, SettingState.READ),
        (MPICH, "7", 9, SettingState.REFUSED),
    ],
)
def test_a_value_is_in_effect_where_the_mpi_holds_that_very_one(
    monkeypatch: pytest.MonkeyPatch, mpi: MpiInstall, word: str, held: int, state: SettingState
) -> None:
    name = "OMPI_MCA_size" if mpi is OPENMPI else "MPIR_CVAR_SIZE"
    own = name.removeprefix("OMPI_MCA_")

    def ask(rows: Sequence[EnvRow], initialise: bool) -> Completed:
        given = any(row.name == name for row in rows)
        return ended(listed(control(own, held if given else 4096)))

    monkeypatch.setattr(effects, "choose_tool", lambda *_: Path("mpigraft-vars"))
    monkeypatch.setattr(effects, "variable_asker", lambda *_: ask)
    assert states(configuration(mpi, **{name: word})) == {name: state}


def test_a_name_with_its_parts_in_another_order_is_unknown(say: Callable[..., None]) -> None:
    say({"pml": ""})
    one = configuration(OPENMPI, MCA_OMPI_pml="ob1", MY_OWN="1")
    unknown, own = setting_effects(one, {})
    assert (unknown.state, unknown.near) == (SettingState.UNKNOWN, NEAR.format("OMPI_MCA_pml"))
    assert own.state is SettingState.NOT_KNOWN
    with pytest.raises(UsageError) as caught:
        refuse_unknown_names(one, (own, unknown))
    assert matches(caught.value, "setting-name-unknown", name="MCA_OMPI_pml", near=unknown.near)


def test_ucx_names_what_it_used_and_what_nobody_did(say: Callable[..., None]) -> None:
    say({}, UCX)
    one = configuration(
        OPENMPI, UCX_RNDV_TRESH="1", UCX_RNDV_THRESH="65k", UCX_ZCOPY_THRESH="abc", UCX_X="1"
    )
    assert states(one) == {
        "UCX_RNDV_TRESH": SettingState.UNKNOWN,
        "UCX_RNDV_THRESH": SettingState.READ,
        "UCX_ZCOPY_THRESH": SettingState.REFUSED,
        "UCX_X": SettingState.NOT_KNOWN,
    }
    assert setting_effects(one, {})[0].near == NEAR.format("UCX_RNDV_THRESH")


def test_intel_names_what_it_took_and_what_it_does_not_support(say: Callable[..., None]) -> None:
    say({}, INTEL)
    one = configuration(
        an_mpi("intel@2021.18.1"),
        I_MPI_ADJUST_BCAST="1", I_MPI_ADJUST_ALREDUCE="2", I_MPI_FOO="3", I_MPI_PIN="1",
    )  # fmt: skip
    assert states(one) == {
        "I_MPI_ADJUST_BCAST": SettingState.READ,
        "I_MPI_ADJUST_ALREDUCE": SettingState.UNKNOWN,
        "I_MPI_FOO": SettingState.UNKNOWN,
        "I_MPI_PIN": SettingState.NOT_KNOWN,
    }
    assert setting_effects(one, {})[1].near.count("ALLREDUCE") == 2  # and IALLREDUCE


def test_libfabric_names_what_it_looks_up_by_provider(say: Callable[..., None]) -> None:
    say({}, FABRIC)
    one = configuration(MPICH, FI_TCP_ZEROCOPY_SIZE="11", FI_PROVIDER="tcp", FI_ZEROCOPY_SIZE="1")
    assert states(one) == {
        "FI_TCP_ZEROCOPY_SIZE": SettingState.READ,
        "FI_PROVIDER": SettingState.READ,
        "FI_ZEROCOPY_SIZE": SettingState.UNKNOWN,
    }
    refuse_unknown_names(one, setting_effects(one, {}))  # a provider may be on other nodes
    (finding,) = effect_findings(setting_effects(one, {}))
    assert matches(
        finding, "setting-ineffective", name="FI_ZEROCOPY_SIZE", state=SettingState.UNKNOWN
    )
    say({}, b"")
    assert set(states(one).values()) == {SettingState.NOT_KNOWN}


def test_a_text_of_mpich_and_a_guest_s_mpi_say_nothing(say: Callable[..., None]) -> None:
    say({"MPIR_CVAR_NETMOD": "ofi", "MPIR_CVAR_SIZE": 1}, held="")
    one = configuration(MPICH, MPIR_CVAR_NETMOD="ucx", MPIR_CVAR_SIZE="7", A=None)
    assert states(one) == {
        "MPIR_CVAR_NETMOD": SettingState.NOT_KNOWN,
        "MPIR_CVAR_SIZE": SettingState.IN_EFFECT,
        "A": SettingState.IN_EFFECT,  # `env -u` in front of every rank
    }
    inside = replace(one, mpi=replace(MPICH, source=IN_GUEST))
    assert set(states(inside).values()) == {SettingState.NOT_KNOWN}


def test_mpich_names_the_file_that_its_collectives_are_selected_by(
    say: Callable[..., None],
) -> None:
    name = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
    one = configuration(MPICH, SettingFile(name, "/t/c.json", "{}"))
    for log, state in (
        (b"MPIR: /t/c.json\nMPID: MPIDI_coll_generic_json\n", SettingState.IN_EFFECT),
        (b"MPIR: MPII_coll_generic_json\n", SettingState.REFUSED),
        (b"", SettingState.NOT_KNOWN),
    ):
        say({name: "x"}, log, held="NOBODY_")
        assert states(one) == {name: state}


def test_an_mpi_that_does_not_list_its_variables_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effects, "choose_tool", lambda *_: Path("mpigraft-vars"))
    monkeypatch.setattr(effects, "variable_asker", lambda *_: lambda *__: ended(b"", 1, b"no"))
    (effect,) = setting_effects(configuration(OPENMPI, OMPI_MCA_x="1"), {})
    assert effect == SettingEffect("OMPI_MCA_x", SettingState.NOT_KNOWN, effect.sign)
    assert matches(effect.sign, "variables-unreadable", id=OPENMPI.id)


def test_a_plain_arm_has_no_effects() -> None:
    assert setting_effects(a_configuration(OPENMPI), {}) == ()
