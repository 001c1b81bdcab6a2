"""What a command starts, as a value, and why it may be no program of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mpigraft.core.errors import CheckFailed
from mpigraft.graft.guest.scripts.launches import InnerLaunch, render_command

MANY = 3  # of a kind that a message names


class CommandKind(StrEnum):
    """Whether a command needs MPI."""

    MPI = "mpi"  # it needs MPI
    NONE = "none"  # it cannot
    UNKNOWN = "unknown"  # it may start or open something that does
    LAUNCHER = "launcher"  # it starts ranks itself: mpirun, or a script that starts it


@dataclass(frozen=True, slots=True)
class GuestCommand:
    """What a command starts. Paths are inside, canonical."""

    kind: CommandKind = CommandKind.MPI
    program: str = ""  # that is checked: an ELF file; empty: nothing that is known
    certain: tuple[str, ...] = ()  # modules of Python or R that it opens in any case
    possible: tuple[str, ...] = ()  # the same, on a condition
    notes: tuple[str, ...] = ()  # what is not known, as messages
    why: str = ""  # of CommandKind.NONE: "it needs no MPI library"
    sources: tuple[str, ...] = ()  # files of the user's own that this was read from
    interpreted: bool = False  # by Python
    launches: tuple[InnerLaunch, ...] = ()  # of LAUNCHER; else those on a condition
    candidates: tuple[str, ...] = ()  # of UNKNOWN: a script's MPI programs, where all are known
    alone: bool = False  # an interpreter that is given no script
    opened: tuple[str, ...] = ()  # of UNKNOWN: MPI libraries that its files name
    also: tuple[str, ...] = ()  # of MPI: other programs that a script starts as surely
    starts: int = 1  # of MPI programs, one after the other in each rank

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that are checked; all have to fit."""
        return (self.program, *self.also) if self.program else ()

    def groups(self) -> Iterator[tuple[GuestCommand, ...]]:
        """Yield commands of one program each, in groups: of each, one program has to fit."""
        if self.candidates:
            yield tuple(replace(self, program=one, candidates=()) for one in self.candidates)
            return
        yield (replace(self, also=()),)
        for program in self.also:
            yield (replace(self, program=program, also=(), certain=(), possible=()),)

    @property
    def needs_mpi(self) -> bool:
        """Whether it needs MPI in any case."""
        return self.kind is CommandKind.MPI

    @property
    def is_launcher(self) -> bool:
        """Whether it starts the ranks of a job itself."""
        return self.kind is CommandKind.LAUNCHER

    def refuse(
        self,
        words: Sequence[str],
        *,
        verb: Sequence[str] = (),
        options: Sequence[str] = (),
        other_way: str = "",
    ) -> None:
        """Raise CheckFailed for a program that cannot need MPI, and for a launcher or a script
        that starts one. `verb` and `options` begin the command that does it: ("mpigraft", "run")
        and ("--image", "app.sif"). `other_way`: another way out for a program without MPI."""
        if self.kind is CommandKind.NONE:
            raise CheckFailed.of(
                "program-not-mpi",
                spec=" ".join(words[:2] if self.interpreted else words[:1]),
                why=self.why,
                or_program=f"; {other_way}" if other_way else "",
            )
        if self.is_launcher:
            launch = next(one for one in self.launches if one.certain)
            advice = _advice(self.launches, verb, options)
            if not launch.script:
                raise CheckFailed.of("program-is-launcher", launcher=launch.launcher, advice=advice)
            way = "; --no-proof starts the script as it is" if "run" in verb else ""
            raise CheckFailed.of(
                "script-starts-launcher",
                launcher=launch.launcher,
                script=launch.script.rpartition("/")[2],
                place=launch.place,
                command=launch.text,
                advice=f"{advice}{way}",
            )

    def launches_on_condition(self) -> Iterator[str]:
        """Describe the launchers that a script may start."""
        for launch in self.launches[:1] if not self.is_launcher else ():
            yield (
                f"{launch.place} may start {launch.launcher} itself: `{launch.text}`; each rank "
                "would start a whole job"
            )

    def unknown_facts(self, ranks: int, *, image: bool) -> Iterator[str]:
        """Describe what a job may start that its files do not show."""
        yield from self.launches_on_condition()
        if not self.notes or not (image or self.kind is CommandKind.UNKNOWN):
            return
        way = "; --program PATH names what needs MPI" if image and not self.interpreted else ""
        alone = f"; if nothing of it needs MPI, each of the {ranks} ranks does the whole work"
        more = alone if ranks > 1 and self.kind is CommandKind.UNKNOWN else ""
        yield f"not known: {'; '.join(self.notes)}{more}{way}"


def _advice(launches: Sequence[InnerLaunch], verb: Sequence[str], options: Sequence[str]) -> str:
    """Say what to type in place of a launch; the names of programs where that cannot be read."""
    own = next((one for one in launches if one.own and one.certain), None)
    if own:
        return f"start it without mpigraft: it has `{own.text}`"
    whole = [one for one in launches if one.programs and (one.exists or not one.script)]
    certain = [one for one in whole if one.certain]
    if not certain:
        return _by_name(whole or launches, verb, options)
    commands = list(dict.fromkeys(render_command(one, verb, options) for one in certain))
    more = f", and {len(commands) - MANY} more" if len(commands) > MANY else ""
    shown = "; ".join(f"`{one}`" for one in commands[:MANY])
    dropped = [word for one in certain for p in one.programs for word in p.dropped]
    without = f"; without {' '.join(dropped)}" if dropped and not commands[1:] else ""
    what = "the program" if len(commands) == 1 else "a program that it starts"
    return f"name {what}: {shown}{more}{without}"


def _by_name(launches: Sequence[InnerLaunch], verb: Sequence[str], options: Sequence[str]) -> str:
    """Name the programs that a script may start, and the command for the first."""
    names = [p.words[0] for one in launches for p in one.programs if p.words[0].isprintable()]
    several = list(dict.fromkeys(names))
    if not several:
        return "name the program that it starts"
    more = f" and {len(several) - MANY} more" if len(several) > MANY else ""
    first = next(one for one in launches if one.programs)
    command = render_command(first, verb, options)
    return f"name the program that it starts ({', '.join(several[:MANY])}{more}): `{command}`"
