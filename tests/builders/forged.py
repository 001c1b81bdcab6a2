"""Text that means harm, planted into every field of a file, and what must not become of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sqlite3
import sys
import threading
import tty
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.cli import main
from mpigraft.core.model import Finding, JobRecord, Level, SubmissionRecord
from mpigraft.core.serialize import canonical
from mpigraft.store import Store
from tests.builders import overtime, records
from tests.builders.commands import Ended

LINE = "FORGED: fits: yes"
EVIL = (
    f"\x1b[9;9H\x1b]0;t\x07\x9b31m\u202e\r{LINE}\n{LINE}|<b onload=x>`*_[l](javascript:x)\n# {LINE}"
)
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OWN = re.compile(r"\x1b\[(?:[\d;]*m|\?25[lh]|2K|1A)|\r")  # what Rich tells a terminal
BEGINS = re.compile(rf"^(\s?|[|│┃>#*-]+ ?){LINE[:6]}", re.MULTILINE)


def check_printed(text: str, *, terminal: bool = False) -> None:
    """Nothing that a terminal obeys, and no line that forged text begins."""
    text = OWN.sub("", text) if terminal else text.replace("\r\n", "\n")  # as CSV has them
    bad = OBEYED.search(text)
    assert not bad, repr(text[max(0, bad.start() - 200) : bad.end() + 80])
    begins = BEGINS.search(text)
    assert not begins, text[max(0, begins.start() - 300) : begins.end() + 80]


def command(*words: object, terminal: bool = False) -> Ended:
    """Run `mpigraft WORDS` with its streams into pipes or both into a terminal, and check what
    comes."""
    ended: list[int] = []

    def work() -> None:
        try:
            main.main(list(map(str, words)))
        except SystemExit as end:
            ended.append(int(end.code or 0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "9999" if terminal else "80")  # Rich folds a line anywhere
        out, err = (_on_terminal if terminal else _into_pipes)(work)
    for text in (out, err):
        check_printed(text, terminal=terminal)
    return Ended(ended[0], out, err)


def _into_pipes(work: Callable[[], None]) -> tuple[str, str]:
    held = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(h, "utf-8", "surrogateescape", write_through=True) for h in held)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        work()
    printed = [one.getvalue().decode("utf-8", "surrogateescape") for one in held]
    out.detach()
    err.detach()
    return printed[0], printed[1]


def _on_terminal(work: Callable[[], None]) -> tuple[str, str]:
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    read: list[bytes] = []

    def reading() -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65536):
                read.append(data)

    thread = threading.Thread(target=reading, daemon=True)
    thread.start()
    with os.fdopen(theirs, "w", encoding="utf-8", errors="surrogateescape") as stream:
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = stream
        try:
            work()
        finally:
            sys.stdout, sys.stderr = before
    thread.join(10)
    os.close(ours)
    return b"".join(read).decode("utf-8", "surrogateescape"), ""


# ------------------------------------------------------------------ documents


def leaves(value: Any, place: str = "") -> Iterator[str]:
    """The places of texts in a document; one for all items of a list."""
    match value:
        case str():
            yield place
        case list():
            for item in value:
                yield from leaves(item, f"{place}[]")
        case dict():
            for name, item in value.items():
                yield from leaves(item, f"{place}.{name}")


def planted(value: Any, wanted: Collection[str], place: str = "") -> Any:
    """The same document with evil at the end of the texts of some places."""
    match value:
        case str() if place in wanted:
            return value + EVIL
        case list():
            return [planted(item, wanted, f"{place}[]") for item in value]
        case dict():
            return {n: planted(v, wanted, f"{place}.{n}") for n, v in value.items()}
    return value


# ------------------------------------------------------------------ stores

IDS = {  # of columns that name the same thing
    "campaign.id": "campaign",
    "launch.id": "launch",
    "allocation.id": "allocation",
    "configuration.key": "configuration",
    "campaign.baseline": "configuration",
}


def honest_store(folder: Path) -> Store:
    """Two campaigns with something in every field."""
    store = Store(folder)
    plan = canonical({"rounds": 8, "skipped": [["openmpi@5/ucx", "no ucx"]]})
    finding = Finding(Level.WARNING, "unbound", "rank 0 may run anywhere", "why", "fix")
    for number in (1, 2):
        one = overtime.campaign(number, libraries=("/opt/lib/libmpi.so.40",))
        ids = {c.key: c.id for c in one.configurations}
        overtime.keep(store, replace(
            one,
            campaign=replace(one.campaign, plan=plan),
            evidence=tuple(
                replace(e, evidence=records.reported_evidence(ids[e.configuration]))
                for e in one.evidence
            ),
            launches=tuple(
                replace(x, findings=(finding,), conditions=records.CONDITIONS, program="p")
                for x in one.launches
            ),
            allocations=tuple(
                replace(a, machine=records.machine(), hosts=("n1", "n2"), job="12", share="0")
                for a in one.allocations
            ),
        ))  # fmt: skip
        made = one.campaign
        with store.writer() as writer:
            writer.add_submission(
                SubmissionRecord(made.id, made.name, made.created, "slurm", "{}", 2, 600, 1)
            )
            writer.add_job(JobRecord(made.id, 0, "12", made.created, "#!/bin/sh\n"))
    return store


def stored_places(store: Path) -> list[str]:
    """Every text of a store: `table.column`, `table.column:place` in JSON; of columns that name
    the same thing one for all."""
    found: dict[str, None] = {}
    for _, table, column, _, text in _texts(store):
        document = _document(text)
        inner = [f":{leaf}" for leaf in leaves(document)] if document is not None else [""]
        found |= dict.fromkeys(_place(table, column) + leaf for leaf in inner)
    return list(found)


def plant(store: Path, wanted: Collection[str]) -> None:
    """Put evil at the end of the texts of some places of a store."""
    for path, table, column, row, text in _texts(store):
        place = _place(table, column)
        inner = {one.removeprefix(f"{place}:") for one in wanted if one.startswith(f"{place}:")}
        document = _document(text)
        new = text + EVIL if place in wanted else text
        new = json.dumps(planted(document, inner)) if inner and document is not None else new
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
            db.commit()


def _texts(store: Path) -> list[tuple[Path, str, str, int, str]]:
    """(file, table, column, row, text) of every text."""
    found = []
    for path in sorted(store.glob("*.sqlite")):
        with contextlib.closing(sqlite3.connect(path)) as db:
            query = (
                "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
                " WHERE m.type = 'table' AND c.type = 'TEXT'"
            )
            for table, column in db.execute(query).fetchall():
                rows = db.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
                found += [(path, table, column, row, text) for row, text in rows if text]
    return found


def _place(table: str, column: str) -> str:
    shared = column in ("campaign", "allocation", "configuration", "layout")
    return IDS.get(f"{table}.{column}", column if shared else f"{table}.{column}")


def _document(text: str) -> Any:
    with contextlib.suppress(ValueError):
        value = json.loads(text)
        return value if isinstance(value, list | dict) else None
    return None
