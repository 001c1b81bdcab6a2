"""What is struck out of every text of a bundle, or of a public page: secrets, home folders, names
of users, addresses of mail, and hosts where asked.

Texts are redacted as they are in files, so a name may follow `\\n` of a JSON string.
"""

from __future__ import annotations

import contextlib
import getpass
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping

from mpigraft.core import env
from mpigraft.core.homes import hide_homes
from mpigraft.core.model import Measured

# A library and its starter in a page: they name nobody, and the page allows them by their hash.
LIBRARY = re.compile(r"(<script>.*?</script>)", re.DOTALL)
TRAILING = re.compile(r"\d+$")
BEGIN, END = r"(?:(?<![\w\\-])|(?<=\\[bfnrt]))", r"(?![\w-])"  # of a name
USER = re.compile(r"/(?:home|Users)/(\w[\w.-]*)")
MAIL = re.compile(rf"{BEGIN}(?<![.+%])[\w.+%-]+@[A-Za-z][\w-]*(?:\.[\w-]+)*\.[A-Za-z]{{2,}}{END}")
ASSIGNED = re.compile(
    r"((?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|API_?KEY|COOKIE)[A-Z0-9_]*\\?[\"']?\s*[=:]"
    r"\s*\\?[\"']?|Authorization: *\w+ +)(?!\d+\b|true|false|null|\[struck)[^\s\"'\\,;<>&]{4,}",
    re.IGNORECASE,
)
FOLDERS = re.compile(r"(?<![\w.:<…/~-])~?/(?!(?:dev|proc|sys)/)(?:[\w.+@,%-]+/)+[\w.+@,%-]+")
OF_STACK = ("/.mpigraft-", "/software/")  # a generation of an override, an installation
SHORTEST = 3  # letters of a name of a user; a shorter one is too often something else
NOBODY = frozenset({"root", "user", "users", "admin", "home", "nobody", "node", "site"})


def redactor(hosts: Iterable[str] = (), users: Iterable[str] = ()) -> Callable[[bytes], bytes]:
    """Make the function that strikes out of a text what nobody may read in it. `hosts` become
    node1, node2, in the order of their names, and `users` user1, user2."""
    rules = [*_secret_rules(env.secrets()), (ASSIGNED, rf"\1{env.STRUCK}")]
    rules += [(MAIL, "name@mail"), *_rules(sorted({host for host in hosts if host}))]
    for number, user in enumerate(sorted(set(users)), 1):
        rules.append((re.compile(f"{BEGIN}{re.escape(user)}{END}"), f"user{number}"))

    def strike(text: str) -> str:
        text = hide_homes(env.redact(text))
        for pattern, name in rules:
            text = pattern.sub(name, text)
        return text

    def strike_bytes(data: bytes) -> bytes:
        parts = LIBRARY.split(data.decode("utf-8", "surrogateescape"))
        kept = (part if place % 2 else strike(part) for place, part in enumerate(parts))
        return "".join(kept).encode("utf-8", "surrogateescape")

    return strike_bytes


def _secret_rules(secrets: Mapping[str, str]) -> Iterable[tuple[re.Pattern[str], str]]:
    """Yield values of secrets as JSON and HTML write them."""
    for value in secrets.values():
        if len(value.strip()) >= 6:  # as env.redact has it
            for form in {json.dumps(value)[1:-1], html.escape(value)} - {value}:
                yield re.compile(re.escape(form)), env.STRUCK


def _rules(hosts: list[str]) -> Iterable[tuple[re.Pattern[str], str]]:
    """Whole names before short ones, then runs of them: nid[001-004]."""
    names = {host: f"node{number}" for number, host in enumerate(hosts, 1)}
    short = {host.partition(".")[0]: name for host, name in names.items()}
    for host, name in sorted((short | names).items(), key=lambda pair: -len(pair[0])):
        yield re.compile(f"{BEGIN}{re.escape(host)}{END}"), name
    for prefix in sorted({TRAILING.sub("", host) for host in short}):
        if prefix and prefix not in short:
            yield re.compile(rf"{BEGIN}{re.escape(prefix)}\[[0-9,\-]+\]"), "nodes"
    domains = {host.partition(".")[2] for host in hosts} - {""}
    for domain in sorted(domains, key=len, reverse=True):
        yield re.compile(f"{BEGIN}{re.escape(domain)}{END}"), "site"


def hide_folders(text: str) -> str:
    """Leave of each path in a text the last name, or what its place in a stack says about a file.
    Devices and the kernel's files are of no site."""

    def shown(hit: re.Match[str]) -> str:
        mark = next((one for one in OF_STACK if one in hit[0]), "/")
        return f"…{mark}{hit[0].rpartition(mark)[2]}"

    return FOLDERS.sub(shown, text)


def hosts_of(side: Measured) -> set[str]:
    """Return every host that a campaign names."""
    named = {host for a in side.allocations for host in (*a.hosts, a.host)}
    ranks = {rank.host for e in side.evidence for rank in e.evidence.ranks}
    nodes = {use.host for x in side.launches if x.conditions for use in x.conditions.nodes}
    return named | ranks | nodes


def users_of(side: Measured, texts: Iterable[bytes]) -> set[str]:
    """Return names of users: those of home folders in texts, and who writes the bundle. A word that
    names a configuration or a benchmark stays: results would lose it."""
    found = {name for data in texts for name in USER.findall(data.decode("utf-8", "replace"))}
    with contextlib.suppress(OSError, KeyError):  # a container without this user
        found.add(getpass.getuser())
    words = [c.id for c in side.configurations] + [row.benchmark for row in side.values]
    ours = {part for word in set(words) for part in re.findall(r"\w+", word)}
    names = {name.rstrip(".-") for name in found}
    return {name for name in names - ours - NOBODY if len(name) >= SHORTEST}
