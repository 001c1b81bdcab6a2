"""Options in IMB's calling sequence: those that change what is measured are a part of the key.

Sources: `-help` of IMB 2021.11 (MPI1, NBC, RMA, P2P, MT and their programs for GPUs), and the
outputs of these programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# which benchmarks and sizes are measured, how often, and with how much memory; data types and
# modes of aggregation have lines of their own
UNMEASURED = frozenset({
    "include", "exclude", "npmin", "input", "msglen", "msgsize", "msglog", "zero_size", "iter",
    "iter_policy", "time", "mem", "multi", "data_type", "red_data_type", "datatype", "count",
    "repeat", "msgsz", "aggregate_mode",
})  # fmt: skip
FLAGS = frozenset({"help", "list"})  # options without a value
MEASURED = {  # option -> what it is where it is not given; of "mem_alloc_type" in programs for GPUs
    "thread_level": "single", "window_size": "64", "window": "64", "off_cache": "off", "map": "1x1",
    "root_shift": "off", "sync": "on", "imb_barrier": "off", "contig_type": "base",
    "warm_up": "on", "warmup": "on", "msg_pause": "off", "mem_alloc_type": "device",
    "malloc_align": "64", "malloc_algo": "serial", "barrier": "on", "stride": "0",
    "aggregate": "off", "pairs": "",
}  # fmt: skip
SWITCH = {
    **dict.fromkeys(("1", "on", "yes", "true", "enable"), "on"),
    **dict.fromkeys(("0", "off", "no", "false", "disable"), "off"),
}


def key_options(words: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read the words of a calling sequence after the program: the options that a key has, and
    which of them are not known."""
    chosen: dict[str, str] = {}
    unknown: list[str] = []
    for option, value in _pairs(words):
        if option in UNMEASURED:
            continue
        usual = MEASURED.get(option)
        if usual is None:
            unknown.append(option)
        given = SWITCH.get(value.lower(), value) if usual in ("on", "off") else value
        if given != usual:
            chosen[option] = re.sub(r"[^A-Za-z0-9._:+-]+", "+", given)[:40]
    return chosen, tuple(unknown)


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    """(option, value), the last of each counts; names of benchmarks are passed over."""
    index = 0
    while index < len(words):
        option = words[index].lstrip("-").lower()
        index += 1
        if words[index - 1][:1] != "-" or option in FLAGS or not option:
            continue
        value = words[index] if index < len(words) and not _is_option(words[index]) else "yes"
        index += value != "yes"
        yield re.sub(r"[^a-z0-9_]+", "_", option)[:40], value


def _is_option(word: str) -> bool:
    return re.match(r"--?[A-Za-z]", word) is not None
