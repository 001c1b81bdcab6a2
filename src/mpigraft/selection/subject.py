"""The guest that `check` and `plan` judge: an image, programs in it, or what the words of a job
start there, by the same examination as in `run`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import GuestKind
from mpigraft.graft import Guest, examine_guest, job_words
from mpigraft.request import (
    GraftSpec,
    JobSubject,
    RunSpec,
    asked_for,
    folders_of_job,
    job_subject,
    read_site,
)


def examine_subject(request: GraftSpec) -> Guest:
    """Examine a guest as ranks would see it that the engine starts from the working folder.

    A script or an interpreter among `programs` is taken as the words of a job; so is one of this
    machine in place of a guest. Raises as `examine_guest` and `job_subject` do, UsageError for an
    interpreter without a script.
    """
    spec, programs = request.guest, request.programs
    if request.words and programs:
        raise UsageError.of("words-and-programs", words=" ".join(request.words))
    named, here = job_words(spec, programs, request.words)
    job = _job_of_site(request.engine)
    if not named:
        return examine_guest(spec, programs, folders_of_job(job, os.environ))
    subject = _subject(request, named, "" if here else spec, job)
    return subject.guest or Guest.on_host(Path(spec), subject.command)


def _job_of_site(engine: str) -> RunSpec:
    """Give what `run` would take by itself, with an engine that was named."""
    return read_site(os.environ).merged(asked_for(RunSpec, {"engine": engine or None}))


def visible_to_job(engine: str = "") -> list[tuple[str, list[str]]]:
    """List, for each kind of guest, the folders of this machine that its ranks would see."""
    shown = folders_of_job(_job_of_site(engine), os.environ)
    return [(kind, sorted(f"{a}:{b}" for a, b in shown(kind).items())) for kind in GuestKind]


def _subject(request: GraftSpec, words: Sequence[str], image: str, site: RunSpec) -> JobSubject:
    """Examine words as `run` does, with the engine and the binds of a job of the site."""
    typed, binds = (
        (*request.typed, "--image", request.guest) if image else request.typed,
        site.optional,
    )
    job = RunSpec(tuple(words), image, engine=site.engine, binds=binds, optional=binds, verb=typed)
    subject = job_subject(job, dict(os.environ))
    if subject.command.alone:
        way = shlex.join((*typed, "--", words[0]) if image else (*typed, words[0], "--"))
        raise UsageError.of("interpreter-alone", program=words[0], way=way)
    return subject
