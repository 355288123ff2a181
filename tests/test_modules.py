"""Every module can be imported if its dependencies are installed."""

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import azjax

PROJECT = Path(__file__).parent.parent / "pyproject.toml"

IMPORTS_OF_GAMES = """
import sys
import jax
before = set(sys.modules)
import azjax.games
found = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*(found - sys.stdlib_module_names))
"""
PLAY_WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # importing one of these is an error
import jax
from azjax import games
game = games.make("tic_tac_toe")
env_state, step = games.VectorEnv(game, 2).reset(jax.random.key(0))
actions = games.random_action(jax.random.key(1), step.legal_action_mask)
env_state, step = games.VectorEnv(game, 2).step(env_state, actions)
state = jax.tree.map(lambda leaf: leaf[0], env_state.state)
print(game.to_text(state), game.to_svg(state))
"""


def test_the_games_import_jax_and_numpy_only():
    code = [sys.executable, "-c", IMPORTS_OF_GAMES]
    imported = subprocess.run(code, capture_output=True, text=True, check=True)
    assert imported.stdout.split() == ["azjax"]


def test_games_are_played_without_the_other_dependencies():
    dependencies = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    packages = {re.match(r"\w+", text)[0] for text in dependencies} - {"jax", "numpy"}
    assert {"flax", "orbax", "tensorboardX"} <= packages
    code = [sys.executable, "-c", PLAY_WITHOUT, *packages]
    played = subprocess.run(code, capture_output=True, text=True, check=True)
    assert "X" in played.stdout
    assert "</svg>" in played.stdout


def test_every_module_can_be_imported():
    names = [found.name for found in pkgutil.walk_packages(azjax.__path__, "azjax.")]
    assert "azjax.play.server.running" in names
    for name in names:
        if name != "azjax.__main__":
            importlib.import_module(name)
