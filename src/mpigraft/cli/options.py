"""Make typer's parameters of the options of a request, and read the request back from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args, get_origin

from mpigraft.cli import common
from mpigraft.cli.common import flag
from mpigraft.request import Asked, RequestOption, RunSpec, asked_for, options_of

Code = TypeVar("Code")
NONE: Mapping[str, Any] = MappingProxyType({})


def takes_request(
    *without: str,
    only: Collection[str] = (),
    read: Callable[[Mapping[str, object]], Asked[Any]] | None = None,
    after: Mapping[str, tuple[str, ...]] = NONE,
    usual: Mapping[str, str | bool] = NONE,
    texts: Mapping[str, str] = NONE,
) -> Callable[[Callable[..., Code]], Callable[..., Code]]:
    """Give a command the options of its parameter of the type `Asked[...]`, in the place of that
    parameter: those of the keys `only`, in this order, or all but for the keys `without`. It gets
    the request that was typed, which `read` makes of words where values are none yet. `after` has
    the command's own parameters that come between options, each row by the key of the option before
    them; `usual` and `texts` what help shows of an option instead, as its default and its text."""

    def decorate(command: Callable[..., Code]) -> Callable[..., Code]:
        signature = inspect.signature(command, eval_str=True)
        name, kind = _request_of(signature)
        every = options_of(kind)
        keys = only or [key for key in every if key not in without]
        options = {key: every[key].showing(usual.get(key), texts.get(key)) for key in keys}
        own = dict(signature.parameters)
        between = {key: [own.pop(one) for one in names] for key, names in after.items()}
        parameters: list[inspect.Parameter] = []
        for one in own.values():
            if one.name != name:
                parameters.append(one)
                continue
            for key, option in options.items():
                parameters += [parameter(option), *between.get(key, ())]

        def call(**values: Any) -> Code:
            typed = {key: values.pop(key) for key in options}
            off = {key for key, one in options.items() if _is_flag(one) and not typed[key]}
            typed |= dict.fromkeys(off)
            asked = read(typed) if read else asked_for(kind, typed)
            return command(**values, **{name: asked})

        call.__doc__ = command.__doc__
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[one.replace(kind=one.KEYWORD_ONLY) for one in parameters]
        )
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        return call

    return decorate


def _request_of(signature: inspect.Signature) -> tuple[str, type]:
    """Find the parameter with the request, and the class of the request."""
    for one in signature.parameters.values():
        if get_origin(one.annotation) is Asked:
            return one.name, get_args(one.annotation)[0]
    raise TypeError("the command takes no request")


def _is_flag(option: RequestOption) -> bool:
    """Tell what has no opposite: False is what was not given."""
    return option.hint is bool and not option.rules.names


def parameter(option: RequestOption) -> inspect.Parameter:
    """Make the parameter of an option. Where its default is shown, it is typer's too."""
    shown = option.field.default if option.rules.usual is True else None
    return inspect.Parameter(
        option.key,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if _is_flag(option) else shown or None,
        annotation=Annotated[_type_of(option), described(option)],
    )


def described(option: RequestOption) -> Any:
    """Describe an option for typer."""
    rules = option.rules
    names, shown = rules.names or (option.flag,), rules.usual
    if _is_flag(option):
        return flag(rules.help, *names, panel=rules.panel, rare=rules.rare)
    return common.option(
        rules.metavar, rules.help, shown, *names, panel=rules.panel, rare=rules.rare
    )


def _type_of(option: RequestOption) -> Any:
    """Give the type that typer reads: None is what was not given, and a text what it cannot
    read."""
    many = get_origin(option.hint) is tuple
    one = get_args(option.hint)[0] if many else option.hint
    text = option.rules.size or option.rules.commas
    one = one if one in (int, float, bool, str) and not text else str
    return list[one] | None if many else one | None  # type: ignore[valid-type]


def row_of(kind: type, key: str, text: str = "", usual: str | bool | None = None) -> Any:
    """Describe an option of a request for a command that reads it by itself."""
    return described(options_of(kind)[key].showing(usual, text))


GUEST = (
    "Guest that the MPI goes under: SIF, podman:IMAGE. Or an OCI archive, a root folder, a program."
)

# Options of `run` that other commands have too.
Hosts = Annotated[str, row_of(RunSpec, "hosts")]
Hostfile = Annotated[str, row_of(RunSpec, "hostfile")]
SshCommand = Annotated[str, row_of(RunSpec, "ssh_command")]
Here = Annotated[
    bool,
    flag("Measure on this node even if it is a login node.", "--here", panel="Where", rare=True),
]
