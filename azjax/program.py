"""The name by which the program was started, for printed commands."""

import shlex
import sys
from pathlib import Path

from azjax.checks import printable

NAME = "azjax"
USAGE_ERROR = 2  # the exit status after a user's mistake


def program() -> str:
    """Returns the command that started the program: `azjax`, `python nim.py` or `python
    -m my_games.nim`; in a notebook, `azjax`."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m
        name = spec.name.removesuffix(".__main__")
        return NAME if name == NAME else f"python -m {name}"
    script = Path(sys.argv[0])
    if not hasattr(main, "__file__") or script.stem == NAME:
        return NAME
    return f"python {shlex.quote(script.as_posix())}"


def error_line(error: BaseException) -> str:
    """Returns the one-line message for an error that ends the program."""
    text = str(error)
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}"
    return printable(text)


def is_users_mistake(error: BaseException) -> bool:
    """Returns whether an exception is a file system error, or a ValueError raised in
    azjax or its script; others are bugs."""
    if isinstance(error, OSError):
        return True
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
    is_raised_here = name.split(".")[0] in (NAME, "__main__")
    return isinstance(error, ValueError) and is_raised_here


def program_for(game: object) -> str:
    """Returns the program that knows a game: `azjax`, or the running one for a user's
    game."""
    is_own = type(game).__module__.partition(".")[0] != NAME
    return program() if is_own else NAME
