"""Every host MPI against one guest, and the answer kept until something that it was made from
changes.

The guest is read once for all MPIs. What is kept says which files were read, which names were
looked for in vain and which folders were listed (`reads`): a repeat looks at their stats alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpigraft.binary import LOADER_VARIABLES
from mpigraft.core import cache, file_dependencies
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.fingerprint import own_state
from mpigraft.core.model import Fit, GuestLabel, Machine, MpiAbi, MpiInstall
from mpigraft.core.serialize import digest, plain, revive
from mpigraft.graft import PODMAN_PREFIX, Guest, GuestMpi, own_mpi_of
from mpigraft.request import GraftSpec
from mpigraft.selection.subject import examine_subject, visible_to_job

if TYPE_CHECKING:
    from mpigraft.graft import CheckInput

KIND = "verdicts-1"  # in the cache
MOST = 64  # answers that are kept: of a large image one has two million bytes
PLACE = "/.mpigraft"  # of the graft in a guest, where an engine can make it


@dataclass(frozen=True, slots=True)
class OtherFits:
    """What would do where the answer is no."""

    fit: tuple[str, ...] = ()  # ids of this machine's other MPIs that fit, by the same check
    fetch: tuple[str, ...] = ()  # commands that fetch an MPI for such programs; not checked


NO_OTHER = OtherFits()


@dataclass(frozen=True, slots=True)
class FitChecks:
    """A guest, its own MPI if it has one, and the fit of each host MPI: why some could not be read,
    and which others would fit if none does."""

    guest: GuestLabel
    own: GuestMpi | None
    tried: tuple[Fit, ...]
    unread: tuple[str, ...] = ()
    others: OtherFits = NO_OTHER

    @property
    def ok(self) -> bool:
        return any(fit.ok for fit in self.tried)


def cached_checks(request: GraftSpec, machine: Machine, mpis: Sequence[str]) -> FitChecks | None:
    """Return the verdicts on these MPIs, by their ids, of an earlier `verdicts`; None where there
    are none, or where something that they were made from is not what it was."""
    document = cache.get(KIND, _key(request, machine)) if _may_be_kept(request) else None
    if not isinstance(document, dict):
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        known = document["of"]
        whole = {mpi.id for mpi in machine.mpis if mpi.usable} <= set(known)
        if list(mpis) != known and (set(mpis) - set(known) or not whole):
            return None
        if not file_dependencies.unchanged(document["reads"]):
            return None
        return _selected(document, mpis)
    return None


def _selected(document: dict[str, Any], mpis: Sequence[str]) -> FitChecks:
    """Select some MPIs from an answer on all."""
    label = revive(GuestLabel, document["guest"])
    tried = [revive(Fit, row | {"guest": document["guest"]}) for row in document["rows"]]
    own = revive(GuestMpi | None, document["own"])
    chosen = tuple(fit for mpi in mpis for fit in tried if fit.mpi == mpi)
    unread = tuple(why for mpi, why in document["unread"] if mpi in mpis)
    others = revive(OtherFits, document["others"])
    if len(chosen) < len(tried):
        fits = tuple(fit.mpi for fit in tried if fit.ok)
        others = OtherFits(fits) if fits else others
    if any(fit.ok for fit in chosen):
        others = NO_OTHER
    return FitChecks(label, own, chosen, unread, others)


def check_fits(request: GraftSpec, machine: Machine, mpis: Sequence[str]) -> FitChecks:
    """Return the verdict on each of these MPIs, by their ids. What is found is kept.

    Raises UsageError and MissingError as `guest.examine` does, MissingError where none of the MPIs
    can be read; CheckFailed for a guest whose loader is not glibc's.
    """
    with file_dependencies.recorded() as noted:
        if not request.guest.startswith(PODMAN_PREFIX):
            file_dependencies.file(request.guest)
        examined = examine_subject(request)
        own = own_mpi_of(examined)
        tried, unread = [], []
        for mpi in mpis:
            try:
                facts = _abi(mpi, request.machine, machine)
            except (MissingError, UsageError) as error:
                if len(mpis) == 1:
                    raise
                unread.append((mpi, error.message))
                continue
            tried.append(_tried(examined, own, facts, machine, request))
        if not tried:
            raise _nothing(examined, own, unread, machine, request)
        others = _others(examined, own, tried, machine, request)
    reasons = tuple(why for _, why in unread)
    verdicts = FitChecks(examined.label, own, tuple(tried), reasons, others)
    if _may_be_kept(request) and (document := noted.document()) is not None:
        rows = [plain(fit) | {"guest": None} for fit in tried]  # all have the same
        what = {
            "of": mpis, "guest": verdicts.guest, "own": own, "rows": rows, "unread": unread,
            "others": others,
        }  # fmt: skip
        cache.put(KIND, _key(request, machine), {**plain(what), "reads": document})
        cache.trim(KIND, MOST)
    return verdicts


def _nothing(
    examined: Guest,
    own: GuestMpi | None,
    unread: Sequence[tuple[str, str]],
    machine: Machine,
    request: GraftSpec,
) -> MissingError:
    from mpigraft.selection import fit_alternatives as alternatives

    wheels = alternatives.fetchable_mpis(examined, own, machine, request.options.replace)
    return MissingError.of(
        "nothing-to-check",
        why=unread[0][1] if unread else "",
        alternatives=alternatives.describe_wheels(wheels) if wheels else "",
    )


def _others(
    examined: Guest,
    own: GuestMpi | None,
    tried: Sequence[Fit],
    machine: Machine,
    request: GraftSpec,
) -> OtherFits:
    """Return which of the machine's other MPIs do fit, by the same check; else what can be
    fetched."""
    from mpigraft.graft import check_pair
    from mpigraft.selection import fit_alternatives as alternatives

    if any(fit.ok for fit in tried):
        return NO_OTHER

    def check(mpi: MpiInstall) -> None:
        facts = _abi(mpi.id, request.machine, machine)
        if not check_pair(_pair(examined, own, facts, machine, request)).ok:
            raise CheckFailed.of("mpi-does-not-fit", mpi=mpi.id)

    fits = alternatives.fitting_mpis(machine, [fit.mpi for fit in tried], check)
    if fits:
        return OtherFits(fits)
    return OtherFits(
        (), alternatives.fetchable_mpis(examined, own, machine, request.options.replace)
    )


def _abi(mpi: str, saved: str, machine: Machine) -> MpiAbi:
    from mpigraft.graft import abi_from_machine, read_abi

    if saved:
        return abi_from_machine(Path(saved), mpi)
    return read_abi(next(m for m in machine.mpis if m.id == mpi))


def _tried(
    examined: Guest, own: GuestMpi | None, facts: MpiAbi, machine: Machine, request: GraftSpec
) -> Fit:
    from mpigraft.graft import check_pair, fitting_programs, reading_errors

    with reading_errors():
        pair = _pair(examined, own, facts, machine, request)
        fit = check_pair(pair)
        whole = fit.ok and not examined.loose
        single = () if whole or (request.words and not examined.loose) else fitting_programs(pair)
    return replace(fit, fitting=fit.guest.programs if whole else single)


def _pair(
    examined: Guest, own: GuestMpi | None, facts: MpiAbi, machine: Machine, request: GraftSpec
) -> CheckInput:
    from mpigraft.graft import CheckInput, GraftRequest, decide_contents

    contents = decide_contents(
        examined,
        facts,
        GraftRequest(
            replace=request.options.replace,
            place=PLACE,
            glibc=request.options.glibc,
            opened=dict(own.plugins) if own else {},
            flags=machine.cpu.flags,
        ),
    )
    return CheckInput(examined, facts, contents, own, machine)


# ------------------------------------------------------------------ what is kept


def _may_be_kept(request: GraftSpec) -> bool:
    """Return whether files show a change. For podman a name may be another image tomorrow."""
    return not request.guest.startswith(PODMAN_PREFIX)


def _saved_digest(path: Path) -> str:
    from mpigraft.graft import machine_content

    return sha256(machine_content(path)).hexdigest()


def _key(request: GraftSpec, machine: Machine) -> str:
    """Return all that decides and is in no file that is noted."""
    return digest(
        {
            "tool": own_state(),
            "guest": [
                os.path.realpath(request.guest),
                request.guest,
                request.programs,
                request.words,
            ],
            "cwd": file_dependencies.working_folder(),
            "shown": visible_to_job(),
            "user": [os.geteuid(), os.getegid(), sorted(os.getgroups())],
            "what": [request.options.replace, request.options.glibc],
            "saved": _saved_digest(Path(request.machine)) if request.machine else "",
            "machine": machine,
            "loader": [(name, os.environ.get(name)) for name in LOADER_VARIABLES],
        }
    )
