"""Parses command-line arguments, with one-line errors."""

import contextlib
import dataclasses
import functools
import inspect
import io
import itertools
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tyro

from azjax.settings import check
from azjax.text import did_you_mean

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def parse(
    target: Callable[..., Any], args: Sequence[str], *, prog: str, **settings: Any
) -> Any:
    """Calls `target` with command-line arguments, as `tyro.cli` does.

    Args:
        target: a function or a dataclass.
        args: the arguments. A boolean option may be a bare flag or be followed by
            `true` or `false`.
        prog: the program's name, for help and messages.
        **settings: further arguments of `tyro.cli`.

    Raises:
        ValueError: the arguments are invalid; the message is one line with the allowed
            ones.
    """
    written = io.StringIO()
    default = settings.get("default")
    booleans = {name for name, kind in options(target, default) if kind is bool}
    args = _bare_flags(args, booleans)
    try:
        with contextlib.redirect_stderr(written):
            return tyro.cli(target, args=args, prog=prog, **settings)
    except SystemExit as end:
        if not end.code:  # help
            raise
    # With unknown arguments allowed, the caller parses the rest.
    checked = [] if settings.get("return_unknown_args") else args
    names = [name for name, _ in options(target, default)]
    raise ValueError(_error_text(written.getvalue(), names, checked, prog))


def parse_known(
    target: Callable[..., Any], args: Sequence[str], *, prog: str
) -> tuple[Any, list[str]]:
    """Calls `target` with those of the arguments that it has; see `parse`. Returns its
    result and the other arguments."""
    return parse(target, args, prog=prog, return_unknown_args=True, add_help=False)


def bind(
    command: Callable[..., None], args: Sequence[str], *, prog: str
) -> Callable[[], None]:
    """Returns a call of a command with command-line arguments, which are within the
    limits in the annotated types of its parameters; see `azjax.settings`.

    Raises:
        ValueError: as in `parse`, also by the call.
    """
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)

    @functools.wraps(command)
    def bound(*args: Any, **kwargs: Any) -> Callable[[], None]:
        def call() -> None:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                check(f"--{name.replace('_', '-')}", value, hints[name])
            command(*args, **kwargs)

        return call

    return parse(bound, args, prog=prog)


def options(
    target: Callable[..., Any], default: object = None, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yields names and types of the arguments of a function or a dataclass, for example
    `search.use-solver` and `bool`.

    Args:
        target: the function or the dataclass.
        default: an instance of the dataclass; its fields may have subclasses of the
            annotated types, with more arguments.
        prefix: prefix of the option names.
    """
    hints = typing.get_type_hints(target, include_extras=True)
    if dataclasses.is_dataclass(target):  # without class variables
        hints = {field.name: hints[field.name] for field in dataclasses.fields(target)}
    for name, hint in hints.items():
        is_annotated = typing.get_origin(hint) is typing.Annotated
        base, *metadata = typing.get_args(hint) if is_annotated else (hint,)
        names = (getattr(extra, "name", None) for extra in metadata)
        given = next((other for other in names if other is not None), name)
        if dataclasses.is_dataclass(base) and isinstance(base, type):
            path = f"{prefix}{given}.".replace("_", "-")
            part = getattr(default, name, None)
            kind = base if part is None else type(part)
            yield from options(kind, part, path if given else prefix)
        elif name != "return":
            yield f"{prefix}{given}".replace("_", "-"), base


def _bare_flags(args: Sequence[str], names: set[str]) -> list[str]:
    """Rewrites `--flag true` as `--flag`, and `--flag false` as `--no-flag`."""
    bare: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("_", "-")
        if not option.startswith("--") or name not in names:
            bare.append(word)
            continue
        if not equals and rest and rest[0].lower() in ("true", "false"):
            value = rest.pop(0)
        elif not equals and "." in name and rest and not rest[0].startswith("-"):
            raise ValueError(f"{option} must be true or false: {rest[0]!r}")
        elif equals and value.lower() not in ("true", "false"):
            raise ValueError(f"{option} must be true or false: {value!r}")
        path, dot, last = name.rpartition(".")
        is_on = value.lower() != "false"
        bare.append(option if is_on else f"--{path}{dot}no-{last}")
    return bare


def _error_text(text: str, names: Sequence[str], args: Sequence[str], prog: str) -> str:
    """Returns tyro's error in one line.

    `text` is tyro's output, a box with a reason and lists of arguments, which are
        indented, and their descriptions further; `names` are the names of the options.
    """
    help_text = f"see {prog} --help"
    lines = [  # without the frame; the first one is a title
        _STYLE.sub("", line)[2:].removesuffix("│").rstrip()
        for line in text.splitlines()[1:-1]
    ]
    listed = [line[4:] for line in lines if line[:4].isspace() and line[4:5].strip()]
    # The reason ends at an empty line or a rule.
    parts = itertools.groupby(lines, lambda line: set(line) <= set("─-"))
    texts = (" ".join(part) for is_rule, part in parts if not is_rule)
    reason = next(texts, "invalid arguments")
    if reason.startswith("Missing from"):
        unnamed = iter(names)  # tyro calls positional ones STR
        missing = [
            entry if entry.startswith("-") else next(unnamed, entry).upper()
            for entry in listed
            if entry != f"{prog} --help"
        ]
        return f"missing: {', '.join(missing)}; {help_text}"
    for option in (arg.partition("=")[0] for arg in args if arg.startswith("--")):
        name = option[2:].replace("_", "-")
        if name and name not in names and name.replace("no-", "") not in names:
            close = did_you_mean(name, names).replace("mean ", "mean --")
            others = [line.split()[0] for line in listed if line.startswith("--")]
            if others:  # tyro's proposals
                close = f"; did you mean {' or '.join(others).replace(',', '')}?"
            return f"unknown option {option}; {help_text}{close}"
    reason = reason.removesuffix(".")
    name, separator, problem = reason.removeprefix("Error parsing ").partition(": ")
    if reason.startswith("Error parsing ") and separator:
        # The error of a settings class contains the setting's name.
        reason = f"{name}: {problem}" if name.startswith("--") else problem
    usage = [f"write {line}" for line in listed[:1]]
    return "; ".join([reason, *usage, help_text])
