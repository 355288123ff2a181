"""`--parts MODULE:NAME`: modules of the user's own in a network."""

import importlib
import os
import sys
from pathlib import Path

from azjax.networks import Parts


def read_parts(text: str | None) -> Parts | None:
    """Returns the modules of the user's own that `--parts MODULE:NAME` names.

    MODULE is imported from the working directory or from where Python finds it. The
    user asks for that; no file of a run has a say in it.

    Raises:
        ValueError: there is no such module, or NAME in it is no `Parts`.
    """
    if text is None:
        return None
    module_name, _, name = text.partition(":")
    if not name or not all(map(str.isidentifier, module_name.split("."))):
        raise ValueError(f"--parts must be MODULE:NAME, such as my_net:PARTS: {text!r}")
    module = sys.modules["__main__"]
    # The program itself may define them: it is not run a second time.
    if Path(getattr(module, "__file__", None) or "").stem != module_name:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if not f"{module_name}.".startswith(f"{error.name}."):
                raise
            raise ValueError(
                f"--parts {text}: there is no module {error.name!r} in "
                f"{os.getcwd()} or where Python looks for modules"
            ) from None
    parts = getattr(module, name, None)
    if not isinstance(parts, Parts):
        raise ValueError(
            f"--parts {text}: {name} in {module_name} must be an "
            f"azjax.networks.Parts: {parts!r}"
        )
    return parts
