"""The guest that `check` and `plan` judge: an image, programs in it, or what the words of a job
start there, by the same examination as in `run`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.graft.guest import Guest, examine_guest, job_words
from mpigraft.request.job import JobSubject, RunSpec, job_subject


def examine_subject(
    verb: Sequence[str], spec: str, programs: Sequence[str] = (), words: Sequence[str] = ()
) -> Guest:
    """Examine a guest for a command that begins with `verb`: ("mpigraft", "check").

    A script or an interpreter among `programs` stands for the words of a job; so does one of this
    machine in place of a guest. Raises as `examine_guest` and `job_subject` do, UsageError for an
    interpreter without a script.
    """
    if words and programs:
        raise UsageError.of("words-and-programs", words=" ".join(words))
    named, here = job_words(spec, programs, words)
    if not named:
        return examine_guest(spec, programs)
    subject = _subject(verb, spec, named, "" if here else spec)
    guest = subject.guest or Guest.on_host(Path(spec), subject.command)
    if not guest.loose and not guest.label.programs:
        notes = "; ".join(subject.command.notes)
        raise UsageError.of("words-not-known", words=shlex.join(named), notes=notes)
    return guest


def _subject(verb: Sequence[str], name: str, words: Sequence[str], image: str) -> JobSubject:
    """Examine words as `run` does."""
    typed = (*verb, name) if image else tuple(verb)
    subject = job_subject(RunSpec(tuple(words), typed, image), dict(os.environ))
    if subject.command.alone:
        way = shlex.join((*typed, "--", words[0]) if image else (*typed, words[0], "--"))
        raise UsageError.of("interpreter-alone", program=words[0], way=way)
    return subject
