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

PLAY_WITHOUT = """
import sys
import jax
before = set(sys.modules)
import azjax.games
found = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*(found - sys.stdlib_module_names - {"jax"}))
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # importing one of these is an error
from azjax import games
game = games.make("tic_tac_toe")
vector_env = games.VectorEnv(game, 2)

@jax.jit
def play(key):
    env_state, step = vector_env.reset(key)
    actions = games.random_action(key, step.legal_action_mask)
    state = vector_env.step(env_state, actions)[0].state
    return jax.tree.map(lambda leaf: leaf[0], state)

state = play(jax.random.key(0))
print(game.to_text(state), game.to_svg(state))
"""


def test_games_import_and_need_jax_and_numpy_only():
    dependencies = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    packages = {re.match(r"\w+", text)[0] for text in dependencies} - {"jax", "numpy"}
    assert {"flax", "orbax", "tensorboardX"} <= packages
    code = [sys.executable, "-c", PLAY_WITHOUT, *packages]
    played = subprocess.run(code, capture_output=True, text=True, check=True)
    imported, drawn = played.stdout.split("\n", 1)
    assert imported.split() == ["azjax"]
    assert "X" in drawn
    assert "</svg>" in drawn


def test_every_module_can_be_imported():
    names = [found.name for found in pkgutil.walk_packages(azjax.__path__, "azjax.")]
    assert "azjax.play.server.running" in names
    for name in names:
        if name != "azjax.__main__":
            importlib.import_module(name)
