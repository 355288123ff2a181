"""`--modules MODULE:NAME`: custom network modules."""

import importlib
import os
import sys
from pathlib import Path, PureWindowsPath
from typing import Annotated

import tyro

from azjax.networks import CustomModules
from azjax.text import quoted

ModulesOption = Annotated[
    str | None,
    tyro.conf.arg(
        help="MODULE:NAME, the azjax.networks.CustomModules of a network that has "
        "modules of your own."
    ),
]


def read_custom_modules(text: str | None) -> CustomModules | None:
    """Imports the custom modules that `--modules MODULE:NAME` names.

    MODULE is imported from the working directory or Python's path. Only the user's
    command names it, never a file of a run.

    Raises:
        ValueError: the module is missing, or NAME in it is not a `CustomModules`.
    """
    if text is None:
        return None
    module_name, _, name = text.rpartition(":")
    file = PureWindowsPath(module_name or name)  # it knows both separators
    if file.suffix == ".py" or len(file.parts) > 1:
        raise ValueError(
            f"--modules names a module, not a file: write {file.stem}:"
            f"{name if module_name else 'NAME'} where {file.name} is in the working "
            f"directory or on Python's path: {text!r}"
        )
    if not all(map(str.isidentifier, [*module_name.split("."), name])):
        raise ValueError(
            f"--modules must be MODULE:NAME, such as my_net:MODULES: {text!r}"
        )
    main = sys.modules["__main__"]
    # The program may define them, or a game that their module imports: a second import
    # would define its classes again.
    if script := Path(getattr(main, "__file__", None) or "").stem:
        sys.modules.setdefault(script, main)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"--modules {text}: there is no module {error.name!r} in "
            f"{os.getcwd()} or on Python's path"
        ) from None
    modules = getattr(module, name, None)
    if not isinstance(modules, CustomModules):
        known = [
            key
            for key, value in vars(module).items()
            if isinstance(value, CustomModules)
        ]
        others = f"; {module_name} has {', '.join(known)}" if known else ""
        raise ValueError(
            f"--modules {text}: {name} in {module_name} must be an "
            f"azjax.networks.CustomModules: {quoted(modules)}{others}"
        )
    return modules
