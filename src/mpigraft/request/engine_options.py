"""Options of container engines, as a profile, a campaign file or a command line has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mpigraft.core.errors import UsageError
from mpigraft.knowledge import Given


def read_engine_options(given: Given) -> tuple[str, ...]:
    """Read {engine: words}, or words as `--engine-option` takes them. They go before the image, as
    a user types them. Raises UsageError for what the engine would take for the image."""
    from mpigraft.graft import options_by_engine

    if isinstance(given.value, dict):
        return tuple(_of_table(given))
    options = given.several(str)
    by_engine: dict[str, list[str]] = {}
    for engine, word in options_by_engine(options):
        by_engine.setdefault(engine, []).append(word)
    for words in by_engine.values():
        _refuse_others(given, given.place, words)
    return options


def _of_table(given: Given) -> Iterator[str]:
    from mpigraft.graft import ENGINES

    source = given.place.rpartition(": ")[0]
    with_options = [name for name, engine in ENGINES.items() if engine.PROGRAMS]
    for engine, words in given.value.items():
        place = f"{source}: {engine}"
        if engine not in with_options:
            raise UsageError.unknown("word-unknown", engine, with_options, what=f"{source}: engine")
        valid = isinstance(words, list) and all(isinstance(word, str) for word in words)
        if not valid or any("\0" in word for word in words):
            raise replace(given, key=engine, value=words, named=place).unfit("a list of texts")
        _refuse_others(given, place, words)
        yield from (f"{engine}={word}" for word in words)


def _refuse_others(given: Given, place: str, words: list[str]) -> None:
    if words and (not words[0].startswith("-") or "--" in words):
        raise UsageError.of(
            "site-options-invalid",
            place=place,
            words=words,
            key=given.key,
            example=given.rules.example,
        )
