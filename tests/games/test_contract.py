"""The contract of `azjax.games.Game`, for every registered game."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import available, check, game_options, make
from azjax.games.random_moves import play_random_moves

# The same code checks large boards and small ones.
SMALL = {
    "breakthrough": "breakthrough:5,4",
    "chess": "chess:max_moves=40",
    "go": "go:5",
    "gomoku": "gomoku:6,7,4",
    "hex": "hex:4",
}
LONG = ("chess", "go")  # also compared with other programs
VARIANTS = ("go:5,superko=True", "gomoku:7,6,exact=True", "hex:4,swap=True")

every_game = pytest.mark.parametrize("name", available())


@pytest.mark.parametrize(
    "spec",
    [
        *(SMALL.get(name, name) for name in available() if name not in LONG),
        *(
            pytest.param(spec, marks=pytest.mark.slow)
            for spec in (*VARIANTS, *(SMALL[name] for name in LONG))
        ),
    ],
)
def test_a_game_keeps_the_contract(spec):
    check(make(spec), num_games=16)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in available() if name in SMALL])
def test_a_game_keeps_the_contract_at_its_default_size(name):
    check(make(name), num_games=8)


@every_game
def test_a_game_can_be_recreated_from_its_name_and_options(name):
    game = make(name)
    assert make(name, **game.options) == game
    assert make(repr(game)) == game
    assert set(game.options) == set(game_options(name))


@every_game
def test_an_unknown_option_is_named(name):
    with pytest.raises(ValueError, match="no_such_option"):
        make(name, no_such_option=1)


@every_game
def test_a_batch_of_positions_is_not_drawn(name):
    game = make(SMALL.get(name, name))
    states = jax.vmap(lambda _: game.init())(np.arange(3))
    for draw in game.to_text, game.to_svg:
        with pytest.raises(ValueError, match=r"one position .* these are \[3\]"):
            draw(states)


@every_game
def test_a_policy_of_another_length_is_not_drawn(name):
    game = make(SMALL.get(name, name))
    policies = {"network": np.ones(game.num_actions + 1)}
    with pytest.raises(ValueError, match=rf"'network' has \[{game.num_actions + 1}\]"):
        game.to_svg(game.init(), policies=policies)


@every_game
def test_a_policy_can_be_a_list(name):
    game = make(SMALL.get(name, name))
    uniform = [1 / game.num_actions] * game.num_actions
    drawn = game.to_svg(game.init(), policies={"network": uniform})
    assert drawn == game.to_svg(game.init(), policies={"network": np.array(uniform)})


@every_game
@pytest.mark.parametrize("beyond", [False, True])
def test_a_number_without_an_action_is_neither_written_nor_marked(name, beyond):
    game = make(SMALL.get(name, name))
    action, state = game.num_actions if beyond else -1, game.init()
    with pytest.raises(ValueError, match=f"action {action} of {name}"):
        game.action_to_text(state, action)
    assert game.to_text(state, action) == game.to_text(state)


@every_game
@pytest.mark.parametrize("text", ["", "no action", "0", "-1", "a0", "z99"])
def test_the_text_of_no_action_is_refused(name, text):
    game = make(SMALL.get(name, name))
    with pytest.raises(ValueError, match=repr(text)):
        game.text_to_action(game.init(), text)


@every_game
def test_a_drawing_is_ascii_and_has_the_policies_names(name):
    game = make(name)
    policy = np.full(game.num_actions, 1 / game.num_actions)
    svg = game.to_svg(game.init(), policies={"network": policy, "search": policy})
    assert ">network" in svg
    assert ">search" in svg
    assert game.to_text(game.init()).isascii()


@every_game
def test_a_state_is_smaller_than_its_observation(name):
    game = make(name)
    assert state_bytes(game) < 4 * np.prod(game.observation_shape)


def test_a_connect_four_state_has_at_most_32_bytes():
    assert state_bytes(make("connect_four")) <= 32


def state_bytes(game):
    leaves = jax.tree.leaves(jax.eval_shape(game.init))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


@every_game
def test_the_heuristic_value_is_between_loss_and_win(name):
    game = make(SMALL.get(name, name))

    @jax.jit
    def look_and_move(state):
        move = jnp.argmax(game.legal_action_mask(state))
        return game.evaluate(state), game.step(state, move)

    state = game.init()
    for _ in range(9):
        guess, state = look_and_move(state)
        assert -1 <= guess <= 1


@every_game
def test_actions_of_cells_start_where_the_observation_shows_it(name):
    """A stone is placed in an empty cell; a move starts at an own piece."""
    game = make(SMALL.get(name, name))
    height, width, _ = game.observation_shape
    num_placed = height * width * game.actions_per_cell
    if name == "connect_four":
        assert num_placed == 0
        return
    assert 0 <= game.num_actions - num_placed <= 1
    keys = jax.random.split(jax.random.key(0), 32)
    moves = jnp.arange(32, dtype=jnp.int32) % min(12, game.max_moves // 2)
    initial = jax.vmap(lambda _: game.init())(keys)
    states = play_random_moves(game, keys[0], initial, moves)
    legal = jax.vmap(game.legal_action_mask)(states)[:, :num_placed]
    can_start = legal.reshape(32, height, width, -1).any(axis=-1)
    observed = jax.vmap(game.observe)(states) != 0
    num_own = {"chess": 6}.get(name, 1)
    own = observed[..., :num_own].any(axis=-1)
    if game.actions_per_cell == 1:
        assert not (can_start & observed[..., :2].any(axis=-1)).any()
    else:
        assert (own | ~can_start).all()
    assert can_start.any(axis=(1, 2)).sum() > 16
