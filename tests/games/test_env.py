import dataclasses
import functools
import inspect
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import VectorEnv, make, random_action

TIC_TAC_TOE = make("tic_tac_toe")
CONNECT_FOUR = make("connect_four")
FIRST_PLAYER_WINS = [0, 3, 1, 4, 2]  # the top row


@functools.cache
def compiled_env(vector_env, donate):
    step = jax.jit(vector_env.step, donate_argnums=0 if donate else ())
    return jax.jit(vector_env.reset), step


def play(vector_env, actions, seed=0, donate=False):
    """Returns the time steps, starting with that of the reset, stacked `[T + 1]`."""
    reset, step = compiled_env(vector_env, donate)
    env_state, time_step = reset(jax.random.key(seed))
    time_steps = [time_step]
    for action in actions:
        env_state, time_step = step(env_state, np.array(action, np.int32))
        time_steps.append(time_step)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *time_steps)


@functools.cache
def random_player(vector_env, num_steps):
    """Returns a compiled function of a key that plays random moves."""

    def play_move(carry, rng_key):
        env_state, time_step = carry
        action = random_action(rng_key, time_step.legal_action_mask)
        env_state, time_step = vector_env.step(env_state, action)
        return (env_state, time_step), time_step

    def run(reset_key):
        start = vector_env.reset(reset_key)
        keys = jax.random.split(jax.random.key(7), num_steps)
        return jax.lax.scan(play_move, start, keys)[1], start[1]

    return jax.jit(run)


def play_at_random(vector_env, num_steps, seed=0):
    """Returns the time steps `[num_steps]`, and that of the reset."""
    games = random_player(vector_env, num_steps)(jax.random.key(seed))
    return jax.tree.map(np.asarray, games)


def test_a_reset_returns_the_initial_position_of_every_game():
    reset = jax.jit(VectorEnv(CONNECT_FOUR, 3).reset)
    _, time_step = jax.device_get(reset(jax.random.key(0)))
    first = CONNECT_FOUR.init()
    assert time_step.observation.shape == (3, 6, 7, 2)
    np.testing.assert_array_equal(time_step.observation[2], CONNECT_FOUR.observe(first))
    assert time_step.legal_action_mask.all()
    assert time_step.current_player.tolist() == [0, 0, 0]
    assert not time_step.terminated.any()
    assert not time_step.reward.any()
    assert not time_step.episode_length.any()


def test_a_step_has_the_documented_shapes_and_dtypes():
    vector_env = VectorEnv(CONNECT_FOUR, 3)
    env_state, first = jax.eval_shape(vector_env.reset, jax.random.key(0))
    actions = jax.ShapeDtypeStruct((3,), jnp.int32)
    after_state, after = jax.eval_shape(vector_env.step, env_state, actions)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, first)
    chex.assert_trees_all_equal_shapes_and_dtypes(after_state, env_state)
    assert [(leaf.shape, leaf.dtype.name) for leaf in after[:-1]] == [
        ((3, 6, 7, 2), "float32"),
        ((3, 7), "bool"),
        ((3,), "int8"),
        ((3, 2), "float32"),
        ((3,), "bool"),
        ((3,), "int32"),
    ]


def test_a_game_is_played_by_its_rules():
    actions = [[a, 8 - a] for a in FIRST_PLAYER_WINS[:4]]
    time_steps = play(VectorEnv(TIC_TAC_TOE, 2), actions)

    @jax.jit
    def step(state, action):
        state = TIC_TAC_TOE.step(state, action)
        return state, TIC_TAC_TOE.observe(state), TIC_TAC_TOE.legal_action_mask(state)

    state = TIC_TAC_TOE.init()
    for move, (action, _) in enumerate(actions):
        state, observation, legal_action_mask = step(state, np.int32(action))
        shown = jax.tree.map(lambda leaf, t=move + 1: leaf[t, 0], time_steps)
        np.testing.assert_array_equal(shown.observation, observation)
        np.testing.assert_array_equal(shown.legal_action_mask, legal_action_mask)
        assert shown.current_player == state.current_player
        assert shown.episode_length == move + 1
        chex.assert_trees_all_equal(shown.next_state, state)


def test_the_last_step_of_a_game_has_its_result_and_the_next_games_position():
    actions = [[a, 8 - a] for a in FIRST_PLAYER_WINS[:4]] + [[2, 0]]
    last = jax.tree.map(lambda leaf: leaf[-1], play(VectorEnv(TIC_TAC_TOE, 2), actions))
    # The second game continues: its mirrored moves were 8 5 7 4, now 0.
    assert last.terminated.tolist() == [True, False]
    assert last.reward.tolist() == [[1, -1], [0, 0]]
    assert last.episode_return.tolist() == last.reward.tolist()
    assert last.episode_length.tolist() == [5, 5]
    assert last.current_player.tolist() == [0, 1]
    assert not last.observation[0].any()
    assert last.legal_action_mask[0].all()
    ended = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), last.next_state)
    assert TIC_TAC_TOE.board(ended).tolist() == [[0, 0, 0], [1, 1, -1], [-1, -1, -1]]


def test_rewards_are_zero_until_a_game_ends():
    time_steps, _ = play_at_random(VectorEnv(CONNECT_FOUR, 8), 60)
    ends = time_steps.terminated
    assert ends.sum() > 8
    assert not time_steps.reward[~ends].any()
    assert (time_steps.reward.sum(axis=-1) == 0).all()


def test_the_step_count_restarts_with_each_game():
    time_steps, _ = play_at_random(VectorEnv(CONNECT_FOUR, 8), 60)
    ended_before = np.pad(time_steps.terminated, ((1, 0), (0, 0)))[:-1]
    expected = np.zeros(8, int)
    for length, is_new in zip(time_steps.episode_length, ended_before, strict=True):
        expected = np.where(is_new, 1, expected + 1)
        np.testing.assert_array_equal(length, expected)


@pytest.mark.parametrize("action", [-1, 9, 4])
def test_an_illegal_action_loses_the_game(action):
    time_steps = play(VectorEnv(TIC_TAC_TOE, 1), [[4], [action]])
    assert time_steps.terminated[-1].tolist() == [True]
    assert time_steps.reward[-1].tolist() == [[1, -1]]


def test_every_game_starts_with_the_given_number_of_random_moves():
    vector_env = VectorEnv(CONNECT_FOUR, 16, random_moves=3)
    time_steps, first = play_at_random(vector_env, 80)
    assert (first.observation.sum(axis=(1, 2, 3)) == 3).all()
    assert (first.current_player == 1).all()
    after_ends = time_steps.observation[time_steps.terminated]
    assert len(after_ends) > 16
    assert (after_ends.sum(axis=(1, 2, 3)) == 3).all()


def test_random_openings_differ_between_games():
    vector_env = VectorEnv(CONNECT_FOUR, 16, random_moves=3)
    time_steps, first = play_at_random(vector_env, 80)
    later = time_steps.observation[time_steps.terminated]
    assert len(np.unique(first.observation, axis=0)) > 8
    assert len(np.unique(later, axis=0)) > 8


def test_the_same_key_gives_the_same_games():
    vector_env = VectorEnv(CONNECT_FOUR, 16, random_moves=3)
    games, again = (play_at_random(vector_env, 80) for _ in range(2))
    chex.assert_trees_all_equal(games, again)


def test_another_key_gives_other_openings():
    vector_env = VectorEnv(CONNECT_FOUR, 16, random_moves=3)
    _, first = play_at_random(vector_env, 80)
    _, other = play_at_random(vector_env, 80, seed=1)
    assert (first.observation != other.observation).any()


def test_without_random_moves_the_key_has_no_effect():
    vector_env = VectorEnv(CONNECT_FOUR, 8)
    games, other = (play_at_random(vector_env, 60, seed) for seed in range(2))
    chex.assert_trees_all_equal(games, other)


def test_no_game_is_over_after_its_random_moves():
    # Most games of tic-tac-toe are over before the eighth move.
    vector_env = VectorEnv(TIC_TAC_TOE, 32, random_moves=8)
    time_steps, first = play_at_random(vector_env, 30)
    assert not first.next_state.terminated.any()
    assert first.legal_action_mask.any(axis=-1).all()
    assert time_steps.legal_action_mask.any(axis=-1).all()
    moves = first.observation.sum(axis=(1, 2, 3))
    assert (moves <= 8).all()
    assert (moves >= 5).any()


def test_the_random_moves_are_legal():
    _, first = play_at_random(VectorEnv(CONNECT_FOUR, 16, random_moves=3), 80)
    occupied = first.observation.any(axis=-1)
    assert (occupied[:, 1:] >= occupied[:, :-1]).all()  # no empty cell is below a disc


@pytest.mark.parametrize("random_moves", [0, 2])
def test_a_step_compiles_once(random_moves):
    vector_env = VectorEnv(TIC_TAC_TOE, 2, random_moves)
    step = jax.jit(vector_env.step)
    env_state, _ = jax.jit(vector_env.reset)(jax.random.key(0))
    for _ in range(3):
        env_state, _ = step(env_state, jnp.zeros(2, jnp.int32))
    assert step._cache_size() == 1


def test_games_can_be_donated_and_time_steps_remain_valid():
    vector_env = VectorEnv(TIC_TAC_TOE, 2, random_moves=1)
    actions = [[0, 1], [4, 5], [8, 0]]
    kept = play(vector_env, actions)
    chex.assert_trees_all_equal(play(vector_env, actions, donate=True), kept)


def test_no_key_is_used_twice():
    vector_env = VectorEnv(TIC_TAC_TOE, 2, random_moves=1)
    with jax.debug_key_reuse(True):
        play_at_random(vector_env, 3)


def test_an_environment_can_be_a_static_argument():
    assert VectorEnv(make("tic_tac_toe"), 2) == VectorEnv(make("tic_tac_toe"), 2)
    assert hash(VectorEnv(make("tic_tac_toe"), 2)) == hash(VectorEnv(TIC_TAC_TOE, 2))
    assert dataclasses.replace(VectorEnv(TIC_TAC_TOE, 2), num_envs=3).num_envs == 3


@pytest.mark.parametrize("num_envs", [0, -1, 2.0, True, "2"])
def test_a_wrong_number_of_games_is_refused(num_envs):
    with pytest.raises(ValueError, match=f"num_envs must be an int >= 1: {num_envs!r}"):
        VectorEnv(TIC_TAC_TOE, num_envs)


@pytest.mark.parametrize("random_moves", [-1, 9, 1.0, True])
def test_a_wrong_number_of_random_moves_is_refused(random_moves):
    with pytest.raises(ValueError, match=f"from 0 to 8: {random_moves!r}"):
        VectorEnv(TIC_TAC_TOE, 2, random_moves)


@pytest.mark.parametrize("game", ["tic_tac_toe", type(TIC_TAC_TOE), None])
def test_an_argument_that_is_not_a_game_is_refused(game):
    with pytest.raises(ValueError, match=f"game must be a Game.*: {game!r}"):
        VectorEnv(game, 2)


@pytest.mark.parametrize(
    ("action", "found"),
    [
        (0, "[] int32"),
        ([0, 1, 2], "[3] int32"),
        ([[0], [1]], "[2, 1] int32"),
        ([0.0, 1.0], "[2] float32"),
        ([True, False], "[2] bool"),
    ],
)
def test_actions_of_another_shape_or_dtype_are_refused(action, found):
    vector_env = VectorEnv(TIC_TAC_TOE, 2)
    env_state, _ = jax.eval_shape(vector_env.reset, jax.random.key(0))
    message = re.escape(f"action must be [2] integers, one for each game: {found}")
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(vector_env.step, env_state, jnp.array(action))


def test_the_example_in_the_documentation_runs(capsys):
    documentation = inspect.cleandoc(VectorEnv.__doc__ or "")
    example = re.findall(r"```python\n(.*?)```", documentation, re.DOTALL)[0]
    exec(example.replace("1024", "16"), {})
    assert re.match(r"games: \d+ won by player 0: \d+", capsys.readouterr().out)
