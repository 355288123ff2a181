"""Every module can be imported if its dependencies are installed."""

import importlib
import pkgutil
import subprocess
import sys

import azjax

IMPORTS_OF_GAMES = """
import sys
import jax
before = set(sys.modules)
import azjax.games
found = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*(found - sys.stdlib_module_names))
"""


def test_the_games_import_jax_and_numpy_only():
    code = [sys.executable, "-c", IMPORTS_OF_GAMES]
    imported = subprocess.run(code, capture_output=True, text=True, check=True)
    assert imported.stdout.split() == ["azjax"]


def test_every_module_can_be_imported():
    names = [found.name for found in pkgutil.walk_packages(azjax.__path__, "azjax.")]
    assert "azjax.play.server.running" in names
    for name in names:
        if name != "azjax.__main__":
            importlib.import_module(name)
