"""Which configuration files the parts of an MPI read: the rows of config_files.toml as values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mpigraft.core.model import Family
from mpigraft.knowledge.reader import RowError, load_rows, toml

FACTS = ("dir", "built-in", "prefix", "home", "cwd")  # next to variables, which are upper-case
TEMPLATE_FIELD = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """What one library or program reads."""

    id: str
    reads: str
    files: tuple[str, ...]  # templates over FACTS and variables
    sources: tuple[str, ...]
    by: re.Pattern[str] | None = None
    families: tuple[Family, ...] = field(default=(), metadata=toml("family"))  # empty: all

    def __post_init__(self) -> None:
        for template in self.files:
            if not template.startswith(("/", "{")) or "*" in template[:-1]:
                raise RowError("files", f"{template!r} is not a path, or has a * before its end")
            for name in TEMPLATE_FIELD.findall(template):
                if name not in FACTS and not name.isupper():
                    raise RowError("files", f"unknown fact {name!r}")
                if name in ("dir", "built-in") and self.by is None:
                    raise RowError("files", f"{{{name}}} without `by`")


def config_rows() -> tuple[ConfigRow, ...]:
    """Return all rows."""
    return load_rows(ConfigRow, "config", "config_files.toml")
