"""The contract of `azjax.games.Game`, for every registered game."""

import jax
import numpy as np
import pytest
from compiled_games import compiled

from azjax.games import available, check, game_options, host, make

# The same code computes large boards and small ones.
SMALL = {
    "breakthrough": "breakthrough:5,4",
    "chess": "chess:max_moves=40",
    "go": "go:5",
    "gomoku": "gomoku:6,7,4",
    "hex": "hex:4",
    "kalah": "kalah:3,3",
    "ur": "ur:2",
}
CHECKED = ("connect_four", "hex:4", "kalah:3,3", "tic_tac_toe")
ALSO_CHECKED = (
    *("breakthrough", "breakthrough:5,4", "chess:max_moves=80", "go"),
    *(
        "go:5,superko=True",
        "gomoku:9",
        "gomoku:7,6,exact=True",
        "hex",
        "hex:4,swap=True",
    ),
    *("kalah", "kalah:7,6,false", "kalah:2,6,remaining=nobody"),
    *("othello", "ur", "ur:2"),
)

every_game = pytest.mark.parametrize("name", available())


def small(name):
    return compiled(make(SMALL.get(name, name)))


@pytest.mark.parametrize(
    "spec",
    [*CHECKED, *(pytest.param(spec, marks=pytest.mark.slow) for spec in ALSO_CHECKED)],
)
def test_a_game_keeps_the_contract(spec):
    check(compiled(make(spec)), num_games=4)


def test_the_contract_is_checked_for_every_game():
    names = {spec.partition(":")[0] for spec in CHECKED + ALSO_CHECKED}
    assert names == set(available())


@every_game
def test_a_game_can_be_recreated_from_its_name_and_options(name):
    """Its state is smaller than its observation."""
    game = make(name)
    assert state_bytes(game) < 4 * np.prod(game.observation_shape)
    assert make(name, **game.options) == game
    assert make(repr(game)) == game
    assert set(game.options) == set(game_options(name))
    with pytest.raises(ValueError, match="no_such_option"):
        make(name, no_such_option=1)


@every_game
def test_only_positions_policies_and_actions_of_the_game_are_drawn_and_read(name):
    game = small(name)
    state, uniform = game.init(), np.full(game.num_actions, 1 / game.num_actions)
    policies = {"network": uniform, "search": uniform}
    svg = game.to_svg(state, policies=policies)
    assert ">network" in svg
    assert ">search" in svg
    # A policy can be a list.
    assert svg == game.to_svg(state, policies={**policies, "search": uniform.tolist()})
    assert game.to_text(state).isascii()
    states = jax.tree.map(lambda leaf: np.stack([leaf] * 3), state)
    for draw in game.to_text, game.to_svg:
        with pytest.raises(ValueError, match=r"one position .* these are \[3\]"):
            draw(states)
    policies = {"network": np.ones(game.num_actions + 1)}
    with pytest.raises(ValueError, match=rf"'network' has \[{game.num_actions + 1}\]"):
        game.to_svg(state, policies=policies)
    for action in -1, game.num_actions:
        with pytest.raises(ValueError, match=f"action {action} of {name}"):
            game.action_to_text(state, action)
        assert game.to_text(state, action) == game.to_text(state)
    if host.waits_for_chance(game, state):
        state = host.next_state(game, state, host.legal_moves(game, state)[0])
    for text in "", "no action", "0", "-1", "a0", "z99":
        with pytest.raises(ValueError, match=repr(text)):
            game.text_to_action(state, text)


def state_bytes(game):
    leaves = jax.tree.leaves(jax.eval_shape(game.init))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


def test_a_state_has_the_stones_and_little_else():
    most = {"connect_four": 32, "gomoku": 67, "hex": 43, "go:9": 128, "go:19": 200}
    most |= {"chess": 56, "chess:repetition=True": 856}
    for spec, number in most.items():
        assert state_bytes(make(spec)) <= number, spec


@every_game
def test_actions_of_cells_start_where_the_observation_shows_it(name):
    """A stone is placed in an empty cell; a move starts at an own piece. Columns, pits
    and places on a path are no actions of cells.

    The heuristic value is between loss and win.
    """
    game = small(name)
    height, width, _ = game.observation_shape
    num_placed = height * width * game.actions_per_cell
    has_cells = name not in ("connect_four", "kalah", "ur")
    assert 0 <= game.num_actions - num_placed <= 1 or not has_cells
    generator, state, num_starts = np.random.default_rng(0), None, 0
    for _ in range(30):
        if state is None or state.terminated:
            state = host.first_state(game)
        if host.waits_for_chance(game, state):
            move = host.random_outcome_move(game, state, generator)
            state = host.next_state(game, state, move)
        assert -1 <= game.evaluate(state) <= 1
        actions = np.array(host.legal_actions(game, state))
        placed = actions[actions < num_placed] // max(1, game.actions_per_cell)
        num_starts += len(placed) > 0
        seen = np.asarray(game.observe(state)).reshape(height * width, -1) != 0
        if game.actions_per_cell == 1:
            assert not seen[placed, :2].any()
        else:
            num_own = {"chess": 6}.get(name, 1)
            assert seen[placed, :num_own].any(axis=-1).all()
        state = host.next_state(game, state, generator.choice(actions))
    assert num_starts > 15 or not has_cells
