import collections
import dataclasses
import functools
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coin_toss import CoinToss
from compiled_games import compiled, single, stack

from azjax.games import VectorEnv, host, make, random_action

TIC_TAC_TOE = compiled("tic_tac_toe")
CONNECT_FOUR = compiled("connect_four")
FIRST_PLAYER_WINS = [0, 3, 1, 4, 2]  # the top row
PAIR = VectorEnv(TIC_TAC_TOE, 2)
WITH_RANDOM_MOVES = VectorEnv(CONNECT_FOUR, 16, random_moves=3)


traces = collections.Counter()  # of the steps of environments


@functools.cache
def compiled_env(vector_env, donate):
    def step(env_state, action):
        traces[vector_env, donate] += 1
        return vector_env.step(env_state, action)

    step = jax.jit(step, donate_argnums=0 if donate else ())
    return jax.jit(vector_env.reset), step


def play(vector_env, actions, seed=0, donate=False):
    """Returns the time steps, starting with that of the reset, stacked `[T + 1]`."""
    reset, step = compiled_env(vector_env, donate)
    env_state, time_step = reset(jax.random.key(seed))
    time_steps = [time_step]
    for action in actions:
        env_state, time_step = step(env_state, np.array(action, np.int32))
        time_steps.append(time_step)
    return stack(time_steps)


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
    return jax.device_get(random_player(vector_env, num_steps)(jax.random.key(seed)))


def test_a_reset_returns_the_initial_position_of_every_game():
    _, time_step = play_at_random(VectorEnv(CONNECT_FOUR, 8), 60)
    first = CONNECT_FOUR.observe(CONNECT_FOUR.init())
    assert time_step.observation.shape == (8, 6, 7, 2)
    np.testing.assert_array_equal(time_step.observation[2], first)
    assert time_step.legal_action_mask.all()
    assert time_step.current_player.tolist() == [0] * 8
    for leaf in (time_step.terminated, time_step.reward, time_step.episode_length):
        assert not leaf.any()


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
    time_steps = play(PAIR, actions)
    state = TIC_TAC_TOE.init()
    for move, (action, _) in enumerate(actions):
        state = host.next_state(TIC_TAC_TOE, state, action)
        shown = jax.tree.map(lambda leaf, t=move + 1: leaf[t, 0], time_steps)
        np.testing.assert_array_equal(shown.observation, TIC_TAC_TOE.observe(state))
        legal = TIC_TAC_TOE.legal_action_mask(state)
        np.testing.assert_array_equal(shown.legal_action_mask, legal)
        assert shown.current_player == state.current_player
        assert shown.episode_length == move + 1
        chex.assert_trees_all_equal(shown.next_state, state)


def test_the_last_step_of_a_game_has_its_result_and_the_next_games_position():
    actions = [[a, 8 - a] for a in FIRST_PLAYER_WINS[:4]] + [[2, 0]]
    last = jax.tree.map(lambda leaf: leaf[-1], play(PAIR, actions))
    # The second game continues: its mirrored moves were 8 5 7 4, now 0.
    assert last.terminated.tolist() == [True, False]
    assert last.reward.tolist() == [[1, -1], [0, 0]]
    assert last.episode_return.tolist() == last.reward.tolist()
    assert last.episode_length.tolist() == [5, 5]
    assert last.current_player.tolist() == [0, 1]
    assert not last.observation[0].any()
    assert last.legal_action_mask[0].all()
    board = np.asarray(TIC_TAC_TOE.board(single(last.next_state)))
    assert board.tolist() == [[0, 0, 0], [1, 1, -1], [-1, -1, -1]]


def test_rewards_and_the_step_count_are_those_of_each_game():
    time_steps, _ = play_at_random(VectorEnv(CONNECT_FOUR, 8), 60)
    ends = time_steps.terminated
    assert ends.sum() > 8
    assert not time_steps.reward[~ends].any()
    assert (time_steps.reward.sum(axis=-1) == 0).all()
    ended_before = np.pad(ends, ((1, 0), (0, 0)))[:-1]
    expected = np.zeros(8, int)
    for length, is_new in zip(time_steps.episode_length, ended_before, strict=True):
        expected = np.where(is_new, 1, expected + 1)
        np.testing.assert_array_equal(length, expected)


@pytest.mark.parametrize("action", [-1, 9, 4])
def test_an_illegal_action_loses_the_game(action):
    time_steps = play(PAIR, [[4, 4], [action, 0]])
    assert time_steps.terminated[-1].tolist() == [True, False]
    assert time_steps.reward[-1].tolist() == [[1, -1], [0, 0]]


def test_every_game_starts_with_the_given_number_of_random_legal_moves():
    time_steps, first = play_at_random(WITH_RANDOM_MOVES, 80)
    later = time_steps.observation[time_steps.terminated]
    assert len(later) > 16
    assert (first.current_player == 1).all()
    for observations in first.observation, later:
        assert (observations.sum(axis=(1, 2, 3)) == 3).all()
        # The openings differ between games.
        assert len(np.unique(observations, axis=0)) > 8
        # No empty cell is below a disc.
        occupied = observations.any(axis=-1)
        assert (occupied[:, 1:] >= occupied[:, :-1]).all()


def test_the_key_determines_the_random_moves_and_nothing_else():
    games, again = (play_at_random(WITH_RANDOM_MOVES, 80) for _ in range(2))
    chex.assert_trees_all_equal(games, again)
    _, other = play_at_random(WITH_RANDOM_MOVES, 80, seed=1)
    assert (games[1].observation != other.observation).any()
    games, other = (
        play_at_random(VectorEnv(CONNECT_FOUR, 8), 60, seed) for seed in range(2)
    )
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


@pytest.mark.parametrize("random_moves", [0, 2])
def test_the_key_determines_outcomes_of_chance_and_no_game_waits_for_one(random_moves):
    vector_env = VectorEnv(CoinToss(), 64, random_moves)
    time_steps, first = play_at_random(vector_env, 20)
    chex.assert_trees_all_equal(play_at_random(vector_env, 20)[0], time_steps)
    other, _ = play_at_random(vector_env, 20, seed=1)
    assert (other.current_player != time_steps.current_player).any()
    assert not time_steps.next_state.waits.any()
    assert time_steps.legal_action_mask.any(axis=-1).all()
    ends = time_steps.terminated
    stones = first.observation.sum(axis=(1, 2, 3))
    assert (stones <= random_moves).all()
    later = time_steps.observation[ends].sum(axis=(1, 2, 3))
    assert (later <= random_moves).all()
    if not random_moves:  # the coin says who begins; the player whose turn it is: 5/7
        firsts = np.concatenate([first.current_player, time_steps.current_player[ends]])
        assert abs(np.mean(firsts) - 2 / 7) < 5 * np.sqrt(10 / 49 / len(firsts))
        # A game that ended before its third move was won by the coin.
        is_short = ends & (time_steps.episode_length < 3)
        assert is_short.any()
        assert (np.abs(time_steps.reward[is_short]) == 1).all()


def test_a_step_compiles_once_and_games_can_be_donated():
    vector_env = VectorEnv(TIC_TAC_TOE, 2, random_moves=1)
    actions = [[0, 1], [4, 5], [8, 0]]
    kept = play(vector_env, actions)
    chex.assert_trees_all_equal(play(vector_env, actions, donate=True), kept)
    play(PAIR, actions)
    assert set(traces.values()) == {1}


@pytest.mark.parametrize("game", [TIC_TAC_TOE, CoinToss()])
def test_no_key_is_used_twice(game):
    vector_env = VectorEnv(game, 2, random_moves=1)

    def run(rng_key):
        env_state, _ = vector_env.reset(rng_key)
        return vector_env.step(env_state, np.zeros(2, np.int32))[1].reward

    def reuse(rng_key):
        return run(rng_key) + run(rng_key)

    with jax.debug_key_reuse(True):
        jax.jit(run)(jax.random.key(0))
        with pytest.raises(jax.errors.KeyReuseError):
            jax.jit(reuse)(jax.random.key(0))


def test_an_environment_can_be_a_static_argument_and_wrong_ones_are_refused():
    assert VectorEnv(make("tic_tac_toe"), 2) == VectorEnv(make("tic_tac_toe"), 2)
    assert hash(VectorEnv(make("tic_tac_toe"), 2)) == hash(VectorEnv(TIC_TAC_TOE, 2))
    assert dataclasses.replace(VectorEnv(TIC_TAC_TOE, 2), num_envs=3).num_envs == 3
    for number in 0, -1, 2.0, True, "2":
        with pytest.raises(ValueError, match=f"envs must be an int >= 1: {number!r}"):
            VectorEnv(TIC_TAC_TOE, number)
    for number in -1, 9, 1.0, True:
        with pytest.raises(ValueError, match=f"from 0 to 8: {number!r}"):
            VectorEnv(TIC_TAC_TOE, 2, number)
    for game in "tic_tac_toe", type(TIC_TAC_TOE), None:
        with pytest.raises(ValueError, match=f"game must be a Game.*: {game!r}"):
            VectorEnv(game, 2)


@pytest.mark.parametrize(
    ("action", "found"),
    [
        *((0, "[] int32"), ([0, 1, 2], "[3] int32"), ([[0], [1]], "[2, 1] int32")),
        *(([0.0, 1.0], "[2] float32"), ([True, False], "[2] bool")),
    ],
)
def test_actions_of_another_shape_or_dtype_are_refused(action, found):
    env_state, _ = jax.eval_shape(PAIR.reset, jax.random.key(0))
    message = re.escape(f"action must be [2] integers, one for each game: {found}")
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(PAIR.step, env_state, np.array(action))
