"""Write report/schemas: the JSON Schema of each `--json` document, from the values that it shows.

    tools/write_schemas.py [--check]

`--check` writes nothing, and ends with 1 if a schema is not what the values say. A document is a
TypedDict beside the function that makes it. There, `Annotated[dict[str, Any], Layout,
Keys(key=str)]` is an object with the keys of `Layout` and one more, `Keys("key")` with one less.
With `finite` figures may be null. Hints, enums, docstrings and the trailing comments of fields
give the rest.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import types
import typing
from collections import abc
from collections.abc import Callable
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mpigraft.core.serialize import OBJECT, SCHEMA, Keys  # noqa: E402

FOLDER = ROOT / "src/mpigraft/report/schemas"
SAME = "Added keys keep the number of the schema, changed ones do not."
SIGNED = {"exit_code", "changed_ns"}  # all other whole numbers are counts
DIGEST = "^([0-9a-f]{64})?$"
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
LISTS = (tuple, list, abc.Sequence)
DOCUMENTS = {  # file: what prints it, and each kind of document
    "across": (
        "compare OLD NEW --json, recheck --json", "report.overtime.across:AcrossDocument"
    ),
    "analyse": ("analyse FILE --json", "cli.analyse:AnalysisDocument"),
    "build": ("build RECIPE --json", "build.describe:BuildDocument"),
    "case": ("case [NAME] --json", "cli.case:CaseDocument"),
    "check": ("check GUEST --json", "cli.check:CheckDocument"),
    "check-stack": ("check STACK --json", "report.stack_check:StackDocument"),
    "compare": ("compare CAMPAIGN --json", "report.json:ComparisonDocument"),
    "diagnose": ("diagnose --json", "report.diagnosis:DiagnosisDocument"),
    "discover": ("discover --json", "report.machine:MachineKeys"),
    "doctor": ("doctor --json", "cli.doctor:DoctorDocument"),
    "get": ("get --list --json", "cli.get:OffersDocument"),
    "history": ("history --json", "report.overtime.history:HistoryDocument"),
    "inject": (
        "inject STACK --mpi SPEC --json, inject STACK --verify --json",
        "report.injection:OverridesDocument",
        "cli.verify_injection:ProofDocument",
    ),
    "layout": ("layout [LAYOUT] --json", "cli.layout:LayoutDocument"),
    "plan": (
        "plan GUEST --mpi SPEC --json, plan --list --json, plan --prune --json",
        "cli.plan:PlanDocument",
        "cli.plan:PlansDocument",
        "cli.plan:PrunedDocument",
    ),
    "profile": ("profile -o FILE, profile --show FILE --json",
                "trace.profile.document:ProfileDocument"),
    "results": (
        "results list --json, results show CAMPAIGN --json",
        "report.store_document:CampaignsDocument", "report.stored:CampaignDocument",
    ),
    "status": ("status [CAMPAIGN] --json", "cli.status:StatusDocument"),
    "undo": ("undo STACK --json", "report.injection:GenerationsDocument"),
    "vars": ("vars --json", "report.variables:VariablesDocument"),
}  # fmt: skip

Schema = dict[str, Any]
aliases: dict[Any, str] = {}


@cache
def names_of(module: str) -> dict[str, Any]:
    """Give the names of a module, with those that it has for type checkers alone."""
    names = dict(vars(import_module(module)))
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for row in node.body:
                if isinstance(row, ast.ImportFrom) and (row.module or "").startswith("mpigraft"):
                    names |= {one.name: named(row.module or "", one.name) for one in row.names}
                else:
                    exec(ast.unparse(row), names)  # noqa: S102
    aliases.update({value: name for name, value in names.items() if is_alias(value)})
    return names


def named(module: str, name: str) -> Any:
    """Give what a module has by a name, if only for type checkers."""
    return getattr(import_module(module), name, None) or names_of(module)[name]


def is_alias(value: Any) -> bool:
    return typing.get_origin(value) is typing.Annotated


def fields_of(kind: Any) -> dict[str, Any]:
    """Give the hint of each key of a value or TypedDict."""
    names: dict[str, Any] = {}
    for one in inspect.getmro(kind)[-2::-1]:
        names |= names_of(one.__module__) if one.__module__.startswith("mpigraft") else {}
    hints = typing.get_type_hints(kind, localns=names, include_extras=True)
    if not dataclasses.is_dataclass(kind):
        return hints
    return {f.name: pairs(hints[f.name], f.metadata == OBJECT) for f in dataclasses.fields(kind)}


def pairs(hint: Any, shown: bool) -> Any:
    """Give the hint of an object for that of its pairs."""
    key, value = typing.get_args(typing.get_args(hint)[0]) if shown else (None, None)
    return abc.Mapping[key, value] if shown else hint  # type: ignore[valid-type]


def comments_of(kind: Any) -> dict[str, str]:
    """Give the trailing comments of fields."""
    found: dict[str, str] = {}
    for one in inspect.getmro(kind)[-2::-1]:
        if not one.__module__.startswith("mpigraft"):
            continue
        lines = inspect.getsource(one).splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                rest = lines[(node.end_lineno or 0) - 1].encode()[node.end_col_offset or 0 :]
                if text := rest.decode().strip().removeprefix("# ").replace("None", "null"):
                    found[node.target.id] = text
    return found


def described(kind: Any, schema: Schema) -> Schema:
    """Add the first paragraph of a docstring."""
    text = inspect.cleandoc(kind.__dict__.get("__doc__") or "").partition("\n\n")[0]
    generated = text.startswith(f"{kind.__name__}(")
    return schema if generated or not text else {"description": " ".join(text.split()), **schema}


class Writer:
    """Schemas of hints, and of the values in them as definitions."""

    def __init__(self) -> None:
        self.defs: dict[str, Schema] = {}
        self.finite = False  # figures may be null

    def of(self, hint: Any, name: str = "") -> Schema:
        """Give the schema of a hint, of the key with that name."""
        origin, parts = typing.get_origin(hint), typing.get_args(hint)
        if hint in (Any, object):
            return {}
        if hint is float and self.finite:
            return {"type": ["number", "null"]}
        if hint in SCALARS:
            more: Schema = {"minimum": 0} if hint is int and name not in SIGNED else {}
            more |= {"pattern": DIGEST} if name in ("digest", "sha256") else {}
            return {"type": SCALARS[hint], **more}
        if origin is typing.Literal:
            return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
        if origin in (types.UnionType, typing.Union):
            return self._any_of([p for p in parts if p is not int or float not in parts], name)
        if origin in LISTS:
            return self._list(origin, parts, name)
        if origin in (dict, abc.Mapping):
            names = {} if parts[0] in SCALARS else {"propertyNames": self.of(parts[0])}
            return {"type": "object", **names, "additionalProperties": self.of(parts[1], name)}
        if is_alias(hint):
            return self._defined(aliases[hint], lambda: self._merged(parts[1:]))
        if issubclass(hint, PurePath):
            return {"type": "string"}
        if issubclass(hint, Enum):
            return self._defined(hint.__name__, lambda: {"enum": [one.value for one in hint]})
        if issubclass(hint, tuple) and not parts:  # NamedTuple
            return self._list(tuple, tuple(fields_of(hint).values()), name)
        return self._defined(hint.__name__, lambda: described(hint, self._merged((hint,))))

    def _any_of(self, parts: list[Any], name: str) -> Schema:
        schemas = [self.of(part, name) for part in parts]
        if len(schemas) == 2 and schemas[1] == {"type": "null"} and "type" in schemas[0]:
            kinds = schemas[0]["type"]
            kinds = [kinds] if isinstance(kinds, str) else kinds
            return {**schemas[0], "type": [*dict.fromkeys((*kinds, "null"))]}
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _list(self, origin: Any, parts: tuple[Any, ...], name: str) -> Schema:
        if origin is not tuple or parts[-1] is Ellipsis:
            return {"type": "array", "items": self.of(parts[0], name)}
        if len({*parts}) == 1:
            length = {"minItems": len(parts), "maxItems": len(parts)}
            return {"type": "array", "items": self.of(parts[0], name), **length}
        items = [self.of(part, name) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(parts), "items": False}

    def _defined(self, name: str, make: Callable[[], Schema]) -> Schema:
        if name not in self.defs:
            self.defs[name] = {}  # it may contain itself
            self.defs[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def _merged(self, parts: tuple[Any, ...]) -> Schema:
        """Make an object of the keys of all parts."""
        inner = [typing.get_args(part)[1:] if is_alias(part) else (part,) for part in parts]
        parts = tuple(one for some in inner for one in some)
        before, self.finite = self.finite, self.finite or "finite" in map(_name, parts)
        hints: dict[str, Any] = {}
        comments: dict[str, str] = {}
        for part in parts:
            if isinstance(part, Keys):
                hints |= part.hints
            elif isinstance(part, type):
                hints |= fields_of(part)
                comments |= comments_of(part)
        properties: dict[str, Schema | bool] = {}
        required = []
        for key, hint in hints.items():
            if hint is None:
                properties[key] = False
                continue
            optional = typing.get_origin(hint) is typing.NotRequired
            required += [] if optional else [key]
            text = {"description": comments[key]} if key in comments else {}
            hint = typing.get_args(hint)[0] if optional else hint  # noqa: PLW2901
            properties[key] = {**text, **self.of(hint, key)}
        self.finite = before
        return {"type": "object", "required": required, "properties": properties}


def _name(part: Any) -> str:
    return getattr(part, "__name__", "")


def schema_of(title: str, kinds: tuple[str, ...]) -> Schema:
    """Make the schema of a command's documents."""
    writer = Writer()
    roots = []
    for place in kinds:
        module, _, name = place.partition(":")
        writer.of(names_of(f"mpigraft.{module}")[name])
        root = writer.defs.pop(name)
        roots.append({
            **root,
            "required": ["schema", *root["required"]],
            "properties": {"schema": {"const": SCHEMA}, **root["properties"]},
        })  # fmt: skip
    first: Schema = roots[0] if len(roots) == 1 else {"oneOf": roots}
    text = f"{first.pop('description', '')} {SAME}".strip()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    defs = {"$defs": dict(sorted(writer.defs.items()))} if writer.defs else {}
    return {**head, "description": text, **first, **defs}


def lines(value: Schema, indent: str = "") -> str:
    """Write an object of keys or definitions with each on a line."""
    rows = []
    for key, one in value.items():
        apart = key in ("properties", "$defs") or (isinstance(one, dict) and "properties" in one)
        text = lines(one, f"{indent} ") if apart else json.dumps(one, ensure_ascii=False)
        rows.append(f"{indent} {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def main(words: list[str]) -> int:
    wrong = 0
    for name, (commands, *kinds) in DOCUMENTS.items():
        title = ", ".join(f"mpigraft {one}" for one in commands.split(", "))
        text = lines(schema_of(title, tuple(kinds))) + "\n"
        path = FOLDER / f"{name}.json"
        if words == ["--check"]:
            wrong |= path.read_text(encoding="utf-8") != text
        else:
            path.write_text(text, encoding="utf-8")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
