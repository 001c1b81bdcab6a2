"""Where `mpigraft-gpu-select` goes around a rank's command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import NOWHERE
from mpigraft.graft import ENGINES, GPU_SELECT, path_in_guest
from mpigraft.knowledge import rank_variables
from mpigraft.launch.gpu_select import is_binary, rank_prefix, wrap_words
from mpigraft.launch.launch_request import LaunchRequest

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankWrapper:
    """`mpigraft-gpu-select` with its options, right inside of the launcher (`outer`) and right
    inside of the engine (`inner`); empty where only words that are not safe need it. The paths are
    those of its copy at either place."""

    outer: Words
    outer_path: Path
    inner: Words
    inner_path: Path

    def inside_launcher(self, words: Words, program: Words) -> Words:
        """Return words of a rank that every launcher passes unchanged; they end in those of
        `program`."""
        return wrap_words(self.outer, self.outer_path, words, program)

    def inside_engine(self, words: Words, program: Words) -> Words:
        """Return the same for what the engine starts: where it has to fetch standard input, and for
        bytes that are not UTF-8, which Apptainer 1.4.5 replaces."""
        if self.inner or any(map(is_binary, program)):
            prefix = self.inner or (str(self.inner_path), "--")
            return wrap_words(prefix, self.inner_path, words, program)
        return words


def rank_wrapper(request: LaunchRequest) -> RankWrapper:
    """Choose where GPUs are selected and standard input is fetched: on this machine, or in the
    guest if its launcher is there, or for an engine that passes no open files. Raises UsageError
    for GPUs under a launcher in the guest."""
    plan, variables = request.configuration.graft, rank_variables(request.launcher_kind)
    inside, placement = request.launcher_in_guest, request.placement
    if inside and placement.gpus:
        raise UsageError.of("gpu-select-in-guest")
    in_guest = path_in_guest(plan) / GPU_SELECT if plan else Path()
    reader, folder, inner = request.stdin, request.witness, Words()
    if plan is not None and reader:
        if inside:
            folder = request.witness_in_guest
        elif not ENGINES[plan.engine].KEEPS_FILES:
            there = request.witness_in_guest
            reader, inner = "", rank_prefix(NOWHERE, in_guest, variables, reader, there)
    path = in_guest if inside else request.natives.gpu_select
    outer = rank_prefix(placement, path, variables, reader, folder)
    return RankWrapper(outer, path, inner, in_guest)
