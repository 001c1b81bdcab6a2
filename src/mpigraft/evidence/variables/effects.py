"""Which variables of a setting are in effect, by what the MPI and its libraries say themselves.

One program of the MPI runs alone with all that a rank of the configuration gets. MPI_T lists the
MPI's own variables with their values; UCX prints which of its names it used and which nobody did,
libfabric each name that it looks up, Intel MPI what it took and what it does not support. Signs:
UCX 1.20 src/ucs/config/parser.c, libfabric 2 src/var.c; seen with Open MPI 5.0.11, MPICH 5.0.2 and
Intel MPI 2021.18.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mpigraft.core.errors import LaunchFailed, UsageError
from mpigraft.core.model import (
    Configuration,
    EnvRow,
    Evidence,
    Finding,
    MpiInstall,
    Scope,
    Setting,
    SettingEffect,
    SettingState,
)
from mpigraft.core.process import Completed, clean
from mpigraft.core.text import did_you_mean
from mpigraft.evidence.variables.query import (
    Answer,
    VariableEntry,
    answer_variables,
    beginnings_of,
    environment_names,
    is_held,
    is_taken,
    reports_default,
    variable_asker,
)
from mpigraft.launch import IN_GUEST
from mpigraft.native import VARS, choose_tool

TALKATIVE = {
    "FI_LOG_LEVEL": "info", "I_MPI_DEBUG": "10", "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "UCX_LOG_LEVEL": "info", "UCX_WARN_UNUSED_ENV_VARS": "y",
}  # fmt: skip
# What MPICH's summary names each of its files of collective algorithms: its source, or the file.
SELECTION = {
    "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "MPIR",
    "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": "MPID",
    "MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE": "MPID/shm",
}
SELECTED = re.compile(r"^(MPIR|MPID|MPID/shm): (\S+)$", re.MULTILINE)
UNUSED = re.compile(r"unused environment variables?: (.*)")  # UCX_A (maybe: UCX_B?); UCX_C
UCX_NAME = re.compile(r"(UCX_\w+)(?: \(maybe: ([^)]*?)\??\))?")
USED = re.compile(r"UCX_\* env variables?: (.*)")
INVALID = re.compile(r"Invalid value for (\w+): .*")
# Of a provider's log its name is part of the variable's: FI_TCP_ZEROCOPY_SIZE; `core` is none.
FI_NAME = re.compile(r":(\w+):\w+:fi_param_get_\w*\(\):\d+<\w+> (read \w+ var|variable) (\w+)=(.*)")
INTEL_READ = re.compile(r"MPI startup\(\): (I_MPI_\w+=.*)")
INTEL_UNKNOWN = re.compile(
    r"MPI startup\(\): (I_MPI_\w+) environment variable is not supported\.\n"
    r"(?:.*Similar variables:\s*\n((?:\[\d+\]\s+I_MPI_\w+\s*\n)*))?"
)
DEFINITE = ("OMPI_MCA_", "MPIR_CVAR_", "UCX_")  # all names that there are were listed
TO_REPORT = {SettingState.UNKNOWN, SettingState.OVERRIDDEN, SettingState.REFUSED}


def setting_effects(
    configuration: Configuration, environ: Mapping[str, str], build: str = "prebuilt"
) -> tuple[SettingEffect, ...]:
    """Return the effect of each variable of the configuration's setting. Of a guest's own MPI
    nothing is known from outside. `build` is as in `choose_tool`, which may raise."""
    setting, mpi = configuration.setting, configuration.mpi
    if setting is None or mpi is None or mpi.source == IN_GUEST:
        return _not_known(setting, "the MPI is in the guest, and is not queried there")
    talkative = [
        EnvRow(name, value, Scope.RANK, "probe")
        for name, value in TALKATIVE.items()
        if all(row.name != name for row in setting.rows)
    ]
    program = choose_tool(VARS, mpi, os.uname().machine, build)
    ask, logs = variable_asker(program, mpi, environ), []

    def start(rows: Sequence[EnvRow], initialise: bool) -> Completed:
        done = ask([*talkative, *rows], initialise)
        if initialise:
            logs.append(clean(done.stderr) + clean(done.stdout))
        return done

    files = tuple(EnvRow(one.variable, one.path, Scope.RANK, "file") for one in setting.files)
    try:
        answer = answer_variables(mpi, (*configuration.rows, *files), start)
    except LaunchFailed as error:
        return _not_known(setting, error.message)
    signs = _Signs(mpi, answer, logs[0] if logs else "")
    return tuple(signs.effect(row) for row in (*setting.rows, *files))


def _not_known(setting: Setting | None, why: str) -> tuple[SettingEffect, ...]:
    names = [row.name for row in setting.rows] if setting else []
    names += [one.variable for one in setting.files] if setting else []
    return tuple(SettingEffect(name, SettingState.NOT_KNOWN, why) for name in names)


class _Signs:
    """What an MPI and its libraries listed and printed, by the names that the environment has."""

    def __init__(self, mpi: MpiInstall, answer: Answer, log: str) -> None:
        self.mpi = mpi
        entries = {entry.variable.name: entry for entry in answer.entries}
        known = environment_names(mpi, [entry.variable for entry in answer.entries])
        self.entries = {name: [entries[own] for own in names] for name, names in known.items()}
        self.unused = dict(pair for line in UNUSED.findall(log) for pair in UCX_NAME.findall(line))
        self.used = dict(
            word.partition("=")[::2] for line in USED.findall(log) for word in line.split()
        )
        self.invalid = {match[1]: match[0] for match in INVALID.finditer(log)}
        self.selected = dict(SELECTED.findall(log))
        self.intel = dict(line.split("=", 1) for line in INTEL_READ.findall(log))
        self.similar = {name: near.split()[1::2] for name, near in INTEL_UNKNOWN.findall(log)}
        lookups = [
            (f"FI_{'' if owner == 'core' else f'{owner}_'}{name}".upper(), found, value)
            for owner, found, name, value in FI_NAME.findall(log)
        ]
        self.asked = {name for name, _, _ in lookups}
        self.read = {name: value for name, found, value in lookups if found != "variable"}

    def effect(self, row: EnvRow) -> SettingEffect:
        """Return the state of one variable."""
        name = row.name
        if row.value is None:
            return SettingEffect(name, SettingState.IN_EFFECT, "ranks start without it")
        if name.startswith("UCX_"):
            return self._of_ucx(name)
        if name.startswith("FI_"):
            return self._of_libfabric(name)
        if name in self.similar:
            near = did_you_mean(name, self.similar[name])
            return SettingEffect(name, SettingState.UNKNOWN, "Intel MPI: not supported", near)
        if name in self.intel:
            return SettingEffect(name, SettingState.READ, f"Intel MPI: {name}={self.intel[name]}")
        if entries := self.entries.get(name):
            return self._of_mpi(row, entries[0])
        if name.startswith(tuple(begins for begins, _ in beginnings_of(self.mpi.family))):
            near = did_you_mean(name, self.entries)
            whole = name.startswith(DEFINITE)
            state = SettingState.UNKNOWN if whole else SettingState.NOT_KNOWN
            return SettingEffect(name, state, "MPI_T does not list it", near)
        parts = sorted(name.split("_"))  # MCA_OMPI_pml, as a talk prints it
        same = [known for known in self.entries if sorted(known.split("_")) == parts]
        if same:
            near = did_you_mean(same[0], same)
            return SettingEffect(name, SettingState.UNKNOWN, "MPI_T does not list it", near)
        return SettingEffect(name, SettingState.NOT_KNOWN, "no library of this MPI names it")

    def _of_mpi(self, row: EnvRow, entry: VariableEntry) -> SettingEffect:
        variable = entry.variable
        held = f"MPI_T: {variable.name} = {variable.word(entry.value)}"
        if part := SELECTION.get(row.name):
            taken = self.selected.get(part, "")
            state = SettingState.IN_EFFECT if taken == row.value else SettingState.REFUSED
            state = state if taken else SettingState.NOT_KNOWN
            return SettingEffect(row.name, state, f"MPICH: collective selection {part}: {taken}")
        if reports_default(self.mpi, variable):
            sign = "MPI_T of this family reports the default of a text, set or not"
            return SettingEffect(row.name, SettingState.NOT_KNOWN, sign)
        last = entry.set_by[-1] if entry.set_by else None
        files = [one.source for one in entry.set_by if one.source.startswith("/")]
        if last and last.source in files and last.value != row.value:
            return SettingEffect(row.name, SettingState.OVERRIDDEN, f"{held}, from {last.source}")
        if not is_taken(self.mpi, entry, row):
            return SettingEffect(row.name, SettingState.REFUSED, held)
        # A file's name is held, whether its rules were taken is not visible; a number for a name.
        if row.source == "file" or not is_held(entry, row.value or ""):
            return SettingEffect(row.name, SettingState.READ, held)
        return SettingEffect(row.name, SettingState.IN_EFFECT, held)

    def _of_ucx(self, name: str) -> SettingEffect:
        if name in self.unused:
            near = f"did you mean {self.unused[name]}? " if self.unused[name] else ""
            return SettingEffect(name, SettingState.UNKNOWN, "UCX: unused variable", near)
        if (short := name.removeprefix("UCX_")) in self.invalid:
            return SettingEffect(name, SettingState.REFUSED, f"UCX: {self.invalid[short]}")
        if name in self.used:
            return SettingEffect(name, SettingState.READ, f"UCX: {name}={self.used[name]}")
        return SettingEffect(name, SettingState.NOT_KNOWN, "UCX printed nothing about it")

    def _of_libfabric(self, name: str) -> SettingEffect:
        if name in self.read:
            return SettingEffect(name, SettingState.READ, f"libfabric: {name}={self.read[name]}")
        if self.asked:
            near = did_you_mean(name, self.asked)
            sign = "libfabric does not look it up with this provider"
            return SettingEffect(name, SettingState.UNKNOWN, sign, near)
        return SettingEffect(name, SettingState.NOT_KNOWN, "libfabric printed nothing about it")


def refuse_unknown_names(configuration: Configuration, effects: Sequence[SettingEffect]) -> None:
    """Raise UsageError for a variable that this version of the MPI or of UCX does not have. Those
    that libfabric does not look up may be of a provider that this node lacks."""
    setting = configuration.setting
    for one in effects:
        absent = one.state is SettingState.UNKNOWN and not one.variable.startswith("FI_")
        if setting and absent:
            raise UsageError.of(
                "setting-name-unknown", setting=setting.name, name=one.variable,
                id=configuration.mpi.id if configuration.mpi else "", near=one.near,
            )  # fmt: skip


def effect_findings(effects: Sequence[SettingEffect]) -> tuple[Finding, ...]:
    """Report the variables of a setting that are not in effect."""
    return tuple(
        Finding.of(
            "setting-ineffective",
            name=one.variable,
            state=one.state,
            sign=one.sign,
            near=one.near,
        )
        for one in effects
        if one.state in TO_REPORT
    )


def with_setting_effects(evidence: Evidence, effects: tuple[SettingEffect, ...]) -> Evidence:
    """Return the evidence of a configuration with its setting's effects, and their findings."""
    findings = (*evidence.findings, *effect_findings(effects))
    return replace(evidence, settings=effects, findings=findings)
