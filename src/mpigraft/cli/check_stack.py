"""`mpigraft check STACK`: a host MPI under all programs of a software stack."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mpigraft.cli.common import chosen_mpis, console, examine_machine, out, tell
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.numbers import duration
from mpigraft.report import (
    own_mpi_line,
    print_screen,
    stack_answer_lines,
    stack_check_lines,
    stack_checks_screen,
    stack_document,
    stack_screen,
    stack_size,
)
from mpigraft.request import INJECTED

if TYPE_CHECKING:
    from mpigraft.binary import Elf
    from mpigraft.core.model import Machine as MachineFacts
    from mpigraft.core.model import MpiAbi
    from mpigraft.graft import Slot, Stack, StackCheck

EVERY_S = 5.0  # between lines of progress in a pipe


def check_stack_of(
    path: str, spec: str, machine: Path | None, *, as_json: bool, full: bool = False
) -> int:
    """Check the MPI that was named under the stack at a path; without one, what is injected there
    now, or if nothing is, all of the machine."""
    stack = read_named_stack(path)
    here = examine_machine(machine, [spec])
    today = not spec and machine is None
    if today and (injected := injected_checks(stack, here)):
        return _report_injected(stack, injected, as_json=as_json, full=full)
    now = own_mpi_line(stack) if today else ""
    checks, unread = _checks(stack, chosen_mpis(spec, here), here, machine)
    if as_json:
        from mpigraft.core.serialize import document

        out(document(**stack_document(stack, checks, unread)))
    elif full:
        out("\n".join([*([now, ""] if now else ()), *stack_answer_lines(stack, checks, unread)]))
    elif len(checks) == 1:
        print_screen(stack_screen(checks[0]), console())
    else:
        print_screen(stack_checks_screen(stack, checks, unread, now), console())
    fits = any(check.ok for check in checks)
    return 0 if fits or not (spec or machine) else CheckFailed.exit_code


def injected_checks(stack: Stack, here: MachineFacts) -> tuple[StackCheck, ...]:
    """Judge what is injected into a stack now, with progress on stderr."""
    from mpigraft.graft import check_injected

    with progress("checking what is injected") as checked:
        return check_injected(stack, here, checked)


def _report_injected(
    stack: Stack, checks: Sequence[StackCheck], *, as_json: bool, full: bool
) -> int:
    if as_json:
        from mpigraft.core.serialize import document

        out(document(**stack_document(stack, (), injected=checks)))
    elif full:
        out("\n\n".join("\n".join(stack_check_lines(check)) for check in checks))
    else:
        for number, check in enumerate(checks):
            if number:
                out("")
            print_screen(stack_screen(check), console())
    return 0 if all(check.ok for check in checks) else CheckFailed.exit_code


def read_part(text: str) -> str:
    """Read --replace of an override: libfabric, ucx, or empty for the MPI. Raises UsageError."""
    if text not in INJECTED:
        raise UsageError.unknown("word-unknown", text, INJECTED, what="--replace")
    return "" if text == INJECTED[0] else text


def read_named_stack(path: str) -> Stack:
    """Read a stack, with progress on stderr."""
    from mpigraft.graft import read_stack

    shown = console(stderr=True)
    with shown.status("reading the stack") as status:
        stack = read_stack(path, lambda n: status.update(f"reading the stack: {n} ELF files"))
    given = os.path.abspath(path)  # noqa: PTH100  links stay as they are given
    if not stack.only and stack.root != given:
        tell(
            f"{given}: of its CPU targets this node takes {stack.root}; name another by its folder"
        )
    if not shown.is_terminal:
        shown.print(stack_size(stack), soft_wrap=True)
    return stack


def _checks(
    stack: Stack, mpis: Sequence[str], here: MachineFacts, machine: Path | None
) -> tuple[list[StackCheck], list[str]]:
    """Check each MPI; those that could not be, with the reason."""
    from mpigraft.graft import check_stack

    checks: list[StackCheck] = []
    unread: list[str] = []
    for mpi in mpis:
        try:
            abi = _abi(mpi, here, machine)
            with progress(f"checking {mpi}") as checked:
                files = files_of(abi)
                checks.append(check_stack(stack, abi, files, machine=here, checked=checked))
        except (MissingError, UsageError) as error:
            if len(mpis) == 1:
                raise
            unread.append(f"{mpi}: {error.message}")
    if not checks:
        raise MissingError.of("nothing-to-check", why="; ".join(unread), alternatives="")
    return checks, unread


def _abi(mpi: str, here: MachineFacts, machine: Path | None) -> MpiAbi:
    from mpigraft.graft import abi_from_machine, read_abi

    if machine:
        return abi_from_machine(machine, mpi)
    return read_abi(next(one for one in here.mpis if one.id == mpi))


def files_of(abi: MpiAbi) -> Callable[[Slot, frozenset[str]], Mapping[str, Elf]]:
    """Give what an override would have of an MPI, as `inject` plans it."""
    from mpigraft.graft import override_files, plan_override
    from mpigraft.native import settings_library

    settings = settings_library(abi.mpi, abi.objects[0].machine)

    def files(slot: Slot, needed: frozenset[str]) -> Mapping[str, Elf]:
        return override_files(plan_override(abi, slot, needed, settings), slot.path)

    return files


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show programs and the time left on stderr: a bar on a terminal, some lines in a pipe."""
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    from mpigraft.cli.progress import make_bar

    begun = last = time.monotonic()
    with make_bar(MofNCompleteColumn(), TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def checked(done: int, total: int) -> None:
            nonlocal last
            bar.update(task, completed=done, total=total)
            now = time.monotonic()
            if bar.console.is_terminal or now - last < EVERY_S or done == total:
                return
            last = now
            left_s = (now - begun) / done * (total - done)
            text = f"{what}: {done} of {total} programs, about {duration(left_s)} left"
            bar.console.print(text, soft_wrap=True)

        yield checked
