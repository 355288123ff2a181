"""The page's rules compared with those of the Python games; needs Node.js."""

import json
import pathlib
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.play.page_files import browser_games, page_files
from azjax.play.server.positions import Rules, describe_position

HERE = pathlib.Path(__file__).parent
NUM_GAMES = 200
NUM_COMPARED = 50  # of these games, the winning cells are compared
ILLEGAL = 0.02  # fraction of moves that are random numbers, legal or not

pytestmark = pytest.mark.usefixtures("node")


def record(game):
    """Plays random games beyond their ends.

    Returns actions `[B, T]`, facts of the positions, leaves `[B, T + 1, ...]`, and the
    final states.
    """

    def look(state):
        return {
            "player": state.current_player,
            "terminated": state.terminated,
            "legal": game.legal_action_mask(state),
            "rewards": game.rewards(state),
            "board": game.board(state),
            "observation": game.observe(state),
        }

    def move(state, rng_key):
        legal_key, any_key, choice_key = jax.random.split(rng_key, 3)
        logits = jnp.where(game.legal_action_mask(state), 0.0, -1e9)
        legal = jax.random.categorical(legal_key, logits)
        anything = jax.random.randint(any_key, (), 0, game.num_actions)
        is_legal = jax.random.uniform(choice_key) >= ILLEGAL
        action = jnp.where(is_legal, legal, anything)
        after = game.step(state, action)
        return after, (action, look(after))

    def play(rng_key):
        state = game.init()
        keys = jax.random.split(rng_key, game.max_moves + 1)
        last, (actions, seen) = jax.lax.scan(move, state, keys)
        first = jax.tree.map(lambda leaf: leaf[None], look(state))
        return actions, jax.tree.map(lambda *x: jnp.concatenate(x), first, seen), last

    keys = jax.random.split(jax.random.key(0), NUM_GAMES)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(play))(keys))


def replay(name, actions):
    rules = page_files() / "games" / f"{name}.js"
    return run_node("replay.mjs", rules, given=actions.tolist())


def run_node(script, *arguments, given):
    result = subprocess.run(
        ["node", HERE / "browser" / script, *arguments],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", browser_games())
def test_random_games_are_equal(name):
    game = games.make(name)
    actions, seen, last = record(game)
    replayed = replay(name, actions)
    for key in ("player", "terminated"):
        found = [[look[key] for look in played] for played in replayed]
        np.testing.assert_array_equal(found, seen[key])
    for key in ("rewards", "board"):
        found = np.array([[look[key] for look in played] for played in replayed])
        np.testing.assert_array_equal(found.reshape(seen[key].shape), seen[key])
    observed = [
        [[*map(int, look["observation"])] for look in game] for game in replayed
    ]
    shape = seen["observation"].shape
    np.testing.assert_array_equal(np.reshape(observed, shape), seen["observation"])
    for played, legal in zip(replayed, seen["legal"], strict=True):
        for look, mask in zip(played, legal, strict=True):
            assert look["legal"] == np.flatnonzero(mask).tolist()
    width = seen["board"].shape[-1]
    for number in range(NUM_COMPARED):
        state = jax.tree.map(lambda leaf, number=number: leaf[number], last)
        cells = [row * width + column for row, column in game.winning_cells(state)]
        assert replayed[number][-1]["winning"] == cells
        assert replayed[number][0]["winning"] == []
    # Both players won games, and illegal actions ended games.
    assert {-1, 1} <= set(seen["rewards"][:, -1, 0].astype(int).tolist())
    assert seen["terminated"][:, -1].all()


@pytest.mark.parametrize("name", browser_games())
def test_moves_have_the_same_notation(name):
    game = games.make(name)
    (played,) = replay(name, np.zeros((1, 1), int))
    state = game.init()
    expected = [game.action_to_text(state, a) for a in range(game.num_actions)]
    assert played[0]["texts"] == expected


WON = {"connect_four": [0, 6, 1, 6, 2, 6, 3], "tic_tac_toe": [0, 3, 1, 4, 2]}


@pytest.mark.parametrize("name", browser_games())
def test_browser_and_server_describe_positions_equally(name):
    rules = Rules(games.make(name), 10)
    played = [WON[name][:ply] for ply in range(len(WON[name]) + 1)]
    told = run_node("describe.mjs", page_files(), name, given=played)
    for position, actions in zip(told, played, strict=True):
        assert position == describe_position(rules, tuple(actions))
    assert position["isOver"]
    assert position["rewards"] == [1, -1]
