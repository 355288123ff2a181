import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax import games
from azjax.games.host import first_state
from azjax.networks import AuxiliaryHead
from azjax.search import tree_bytes
from azjax.training import (
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    preset,
)
from azjax.training.replay import (
    Index,
    Replay,
    Sample,
    draw_batch,
    empty_replay,
    insert,
    locate,
    make_batch,
    make_index,
    uniform_sampler,
)
from azjax.training.self_play import Trajectory
from azjax.training.stored_policy import store_policy
from azjax.training.targets import ValueTarget, horizon, lambda_returns, lambda_target

GAME = games.make("tic_tac_toe")
T, B, NUM_CHUNKS = 3, 2, 4
CAPACITY = T * NUM_CHUNKS
FIRST = first_state(GAME)
# The first player completes the left column in five moves; and a drawn game.
FIRST_WINS = [0, 1, 3, 2, 6]
DRAWN = [0, 1, 2, 4, 3, 5, 7, 6, 8]


@functools.partial(jax.jit, static_argnames=("td_lambda", "horizon", "finds_ends"))
def index_of(replay, num_moves, window, *, td_lambda, horizon, finds_ends=False):
    value_target = ValueTarget(
        functools.partial(lambda_returns, td_lambda=td_lambda), horizon
    )
    return make_index(
        replay, num_moves, window, value_target=value_target, finds_ends=finds_ends
    )


insert_into = jax.jit(insert)
locate_all = jax.jit(locate)


@functools.cache
def room(**settings):
    """An empty replay, created by one program."""
    return jax.jit(functools.partial(empty_replay, GAME, **settings))()


@jax.jit
def record(state, action, number):
    """Returns the row of a move, and the position after it."""
    after = GAME.step(state, action)
    policy, _ = store_policy(jax.nn.one_hot(action, 9), 9)
    value = jnp.float32(number / 100)
    reward = GAME.rewards(after)[state.current_player]
    row = Trajectory(
        state=state,
        action=action.astype(jnp.uint8),
        policy=policy,
        value=value,
        draw_probability=value,
        regret=jnp.float32(0),
        reward=reward,
        terminated=after.terminated,
    )
    return row, after


@functools.partial(jax.jit, static_argnums=(0, 4), static_argnames="auxiliary")
def draw(game, replay, index, rng_key, batch_size, *, auxiliary=()):
    return draw_batch(
        *(game, (), replay, index, rng_key),
        sampler=uniform_sampler(),
        size=batch_size,
        auxiliary=auxiliary,
    )


def play(*slots):
    """Plays lines of moves in B slots, consecutive games in each slot.

    Returns:
        A Trajectory with the moves of the slots; `value` numbers them.
    """
    columns = []
    for lines in slots:
        rows = []
        for moves in lines:
            state = FIRST
            for action in moves:
                row, state = record(state, np.int32(action), np.int32(len(rows)))
                rows.append(row)
        columns.append(jax.tree.map(lambda *leaves: np.stack(leaves), *rows))
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *columns)


@functools.cache
def filled(num_chunks):
    """Returns a replay with the first chunks of 18 moves in two slots.

    The slots have games of 5 + 5 + 5 + 3 and of 9 + 9 moves.
    """
    moves = play([FIRST_WINS] * 3 + [FIRST_WINS[:3]], [DRAWN] * 2)
    replay = room(
        num_chunks=NUM_CHUNKS, moves_per_chunk=T, num_games=B, policy_entries=9
    )
    for chunk in range(num_chunks):
        part = jax.tree.map(lambda leaf: leaf[chunk * T : (chunk + 1) * T], moves)  # noqa: B023
        replay = insert_into(replay, part, np.int32(chunk))
    return replay


@functools.cache
def indexed(num_chunks, window=CAPACITY, td_lambda=1.0, horizon=9, finds_ends=False):
    return index_of(
        filled(num_chunks),
        np.int32(num_chunks * T),
        np.int32(window),
        td_lambda=td_lambda,
        horizon=horizon,
        finds_ends=finds_ends,
    )[1]


def eligible(num_chunks, **settings):
    """Returns the numbers of the eligible moves in each slot."""
    index = indexed(num_chunks, **settings)
    positions = jax.device_get(locate_all(index, np.arange(CAPACITY * B)))
    row, game = (each[: int(index.size)] for each in positions)
    assert len(set(zip(row.tolist(), game.tolist(), strict=True))) == len(row)
    value = np.asarray(filled(num_chunks).chunk.value)
    moves = np.rint(100 * value[row, game]).astype(int)
    return [sorted(moves[game == slot].tolist()) for slot in range(B)]


def test_only_finished_games_are_eligible_with_a_long_horizon():
    assert eligible(1) == [[], []]
    assert indexed(1).size == 0
    assert eligible(2) == [[0, 1, 2, 3, 4], []]
    assert eligible(3) == [list(range(5)), list(range(9))]


def test_the_newest_chunk_overwrites_the_oldest():
    held = np.rint(100 * np.asarray(filled(6).chunk.value)[:, 0]).astype(int)
    assert held.tolist() == [12, 13, 14, 15, 16, 17, 6, 7, 8, 9, 10, 11]
    assert eligible(6) == [list(range(6, 15)), list(range(6, 18))]
    # In a window, only its moves.
    assert eligible(6, window=5) == [[13, 14], [13, 14, 15, 16, 17]]


def test_a_game_that_spans_chunks_gets_its_later_result():
    win, tie, loss = np.eye(3)
    result = np.asarray(indexed(3).value_target)
    np.testing.assert_array_equal(result[:5, 0], [win, loss, win, loss, win])
    np.testing.assert_array_equal(result[:9, 1], [tie] * 9)
    # Moves 10 to 14 are a game; its last three are at the beginning of the ring.
    result = np.asarray(indexed(6).value_target)
    np.testing.assert_array_equal(result[[10, 11, 0, 1, 2], 0], [win, loss] * 2 + [win])


@pytest.mark.parametrize("oldest", [0, 3, 7])
def test_a_position_is_eligible_after_horizon_moves_of_its_game(oldest):
    """The ring starts at any row; moves of the next game do not count."""
    empty = room(num_chunks=8, moves_per_chunk=1, num_games=2, policy_entries=9)
    terminated = np.zeros((8, 2), bool)
    terminated[(4 + oldest) % 8, 1] = True
    moves = empty.chunk._replace(terminated=terminated)
    _, index, _ = index_of(
        Replay(moves, empty.was_eligible),
        np.int32(8 + oldest),
        np.int32(8),
        td_lambda=0.5,
        horizon=3,
        finds_ends=True,
    )
    ends = np.roll(index.last, -oldest, axis=0).T
    assert ends.tolist() == [[-1] * 8, [(4 + oldest) % 8] * 5 + [-1] * 3]
    expected = [[1, 1, 1, 1, 1, 0, 0, 0]] * 2
    np.testing.assert_array_equal(
        np.roll(index.is_eligible, -oldest, axis=0).T, expected
    )
    np.testing.assert_array_equal(np.roll(index.is_new, -oldest, axis=0).T, expected)


# Positions of long games


class Trajectories(NamedTuple):
    """Scripted results of games in B slots, `[moves, B]` each."""

    terminated: np.ndarray
    reward: np.ndarray
    value: np.ndarray
    draw: np.ndarray
    player: np.ndarray


def trajectories(num_moves, max_moves, chance):
    """Games have the greatest length in slot 0, any length in 1, one move in 2."""
    terminated = np.zeros((num_moves, 3), bool)
    for slot, shortest in enumerate((max_moves, 2, 1)):
        longest = 1 if slot == 2 else max_moves
        lengths = chance.integers(shortest, longest + 1, num_moves)
        ends = np.cumsum(lengths) - 1
        terminated[ends[ends < num_moves], slot] = True
    shape = terminated.shape
    reward = np.where(terminated, chance.integers(-1, 2, shape), 0)
    value = chance.uniform(-1, 1, shape)
    draw, player = chance.uniform(0, 1, shape), chance.integers(0, 2, shape)
    return Trajectories(terminated, reward, value, draw, player)


def probabilities(value, draw):
    """Returns win, draw and loss probabilities, `[..., 3]`, by the definition."""
    tie = np.minimum(draw, 1 - np.abs(value))
    return np.stack([(1 - tie + value) / 2, tie, (1 - tie - value) / 2], axis=-1)


def lambda_return(played, move, slot, td_lambda):
    """Returns the forward view: a weighted mean of the values after 1, 2, ... moves."""
    terminated = played.terminated[move:, slot]
    has_ended = terminated.any()
    length = int(terminated.argmax()) + 1 if has_ended else len(terminated) - 1
    later = slice(move + 1, move + length + 1)
    seen = probabilities(played.value[later, slot], played.draw[later, slot])
    if has_ended:
        reward = played.reward[move + length - 1, slot]
        seen = np.concatenate([seen[: length - 1], np.eye(3)[None, 1 - int(reward)]])
        later = np.append(np.arange(move + 1, move + length), move + length - 1)
    is_other = played.player[later, slot] != played.player[move, slot]
    seen[is_other] = seen[is_other, ::-1]
    weight = (1 - td_lambda) * td_lambda ** np.arange(length)
    weight[-1] = td_lambda ** (length - 1)
    return weight @ seen


def play_script(config, max_moves, num_chunks, window=None):
    """Runs insert and make_index as a run of `config` does, with three slots.

    Returns:
        The trajectories; the number of moves made when each move became eligible, 0 if
        it never did; the counts of a run; and the last targets.
    """
    length = config.self_play.moves_per_chunk
    played = trajectories(num_chunks * length, max_moves, np.random.default_rng(0))
    shapes = jax.eval_shape(
        lambda: empty_replay(
            GAME,
            num_chunks=config.replay_chunks,
            moves_per_chunk=length,
            num_games=3,
            policy_entries=9,
        )
    )
    replay = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    empty = jax.tree.map(lambda leaf: leaf[:length], replay.chunk)
    capacity = config.replay_chunks * length
    moves = horizon(config.learner.td_lambda, max_moves)
    since = np.zeros(played.terminated.shape, int)
    total, delay = 0, 0.0
    for iteration in range(1, num_chunks + 1):
        part = slice((iteration - 1) * length, iteration * length)
        players = played.player[part].astype(np.int8)
        trajectory = empty._replace(
            state=dataclasses.replace(empty.state, current_player=players),
            terminated=played.terminated[part],
            reward=played.reward[part].astype(np.float32),
            value=played.value[part].astype(np.float32),
            draw_probability=played.draw[part].astype(np.float32),
        )
        replay = insert_into(replay, trajectory, np.int32(iteration - 1))
        replay, index, counted = index_of(
            replay,
            np.int32(iteration * length),
            np.int32(window or config.window_moves(iteration)),
            td_lambda=config.learner.td_lambda,
            horizon=moves,
        )
        first, count = jax.device_get((index.first, index.lengths))
        # The newest move in this row.
        newest = iteration * length - 1
        begin = newest - (newest - first) % capacity
        for slot in range(3):
            drawable_now = since[begin : begin + count[slot], slot]
            drawable_now[drawable_now == 0] = iteration * length
        total += int(counted.newly)
        delay += float(counted.delay)
    counts = {"eligible": total, "delay": delay, "waiting": int(counted.waiting)}
    rows = (begin + np.arange(count.max())) % capacity
    targets = np.asarray(index.value_target)[rows]
    return played, since, counts, (begin, count, targets)


@pytest.mark.parametrize("name", ["cpu", "accelerator"])
@pytest.mark.parametrize("game", ["chess", "go:size=19"])
def test_every_position_of_a_long_game_becomes_eligible_with_each_preset(name, game):
    config = preset(name, game, iterations=1)
    max_moves = games.make(game).max_moves
    played, since, counts, drawn = play_script(config, max_moves, 40)
    first, number, targets = drawn
    assert first > 300, "too short: few positions have left the window"
    # All but the newest, which are not eligible yet.
    assert since[: -horizon(config.learner.td_lambda, max_moves)].all()
    assert counts["eligible"] == (since > 0).sum()
    assert counts["eligible"] + counts["waiting"] == since.size
    delay = (since - 1 - np.arange(len(since))[:, None])[since > 0]
    assert counts["delay"] == delay.sum()
    for slot in range(3):
        for place in range(0, number[slot], 7):
            wanted = lambda_return(
                played, first + place, slot, config.learner.td_lambda
            )
            np.testing.assert_allclose(targets[place, slot], wanted, atol=5e-4)


def small(window, td_lambda, moves_per_chunk=4):
    """Returns settings for tic-tac-toe with a window of some number of moves."""
    return TrainConfig(
        game="tic_tac_toe",
        iterations=1,
        num_lanes=1,
        self_play=SelfPlayConfig(num_games=2, moves_per_chunk=moves_per_chunk),
        replay=ReplayConfig(
            capacity=2 * (window + moves_per_chunk),
            window=1e-9,
            min_window=2 * window,
            min_positions=0,
        ),
        learner=LearnerConfig(td_lambda=td_lambda),
    )


@pytest.mark.parametrize("td_lambda", [0.0, 0.2, 1.0])
def test_the_smallest_allowed_window_keeps_positions_until_they_are_eligible(td_lambda):
    moves = horizon(td_lambda, 9)
    config = small(4 + moves, td_lambda)
    _, since, _, _ = play_script(config, 9, 20)
    assert since[:-moves].all()
    with pytest.raises(ValueError, match="min_window must be >="):
        small(3 + moves, td_lambda)


def test_positions_that_leave_a_window_before_eligibility_are_counted():
    config = small(9, 0.2)
    _, since, counts, _ = play_script(config, 9, 20, window=8)
    assert counts["eligible"] == (since > 0).sum()
    missed = since.size - counts["eligible"] - counts["waiting"]
    assert 0 < missed == (since[:-8] == 0).sum()


def test_a_chess_position_takes_less_than_350_bytes_with_its_index():
    """A dense policy would take 9,344 bytes."""
    chess = games.make("chess")
    entries = preset("cpu", "chess").replay.policy_entries
    shapes = {"num_chunks": 1, "moves_per_chunk": 1, "num_games": 1}
    replay = jax.eval_shape(
        lambda: empty_replay(chess, **shapes, policy_entries=entries)
    )
    zero = np.int32(0)
    _, index, _ = jax.eval_shape(
        lambda store: make_index(store, zero, zero, value_target=lambda_target(1.0, 1)),
        replay,
    )
    assert tree_bytes((replay, index)) < 350


def test_samples_are_played_positions_under_symmetries():
    batch = jax.device_get(draw(GAME, filled(6), indexed(6), jax.random.key(0), 64))
    assert batch.observation.shape == (64, 3, 3, 2)
    empty = batch.observation.sum(axis=-1).reshape(64, 9) == 0
    # In tic-tac-toe the empty cells are the legal actions, under every symmetry.
    np.testing.assert_array_equal(batch.legal_action_mask, empty)
    chosen = batch.targets.policy.argmax(axis=-1)
    assert np.take_along_axis(empty, chosen[:, None], 1).all()
    np.testing.assert_array_equal(batch.targets.policy.sum(axis=-1), np.ones(64))
    assert batch.targets.policy.dtype == np.float32
    # Sparse policies are sampled like dense ones.
    dense = np.asarray(filled(6).chunk.policy.probability, np.float32)
    sparse, _ = jax.jit(store_policy, static_argnums=1)(dense, 2)
    assert sparse.action is not None
    other = filled(6).replace(chunk=filled(6).chunk._replace(policy=sparse))
    again = draw(GAME, other, indexed(6), jax.random.key(0), 64)
    jax.tree.map(np.testing.assert_array_equal, batch, again)


@pytest.fixture(scope="module")
def one_position():
    """Returns a replay, an index with one eligible position, and its images."""
    only = indexed(6)._replace(first=np.int32(9), lengths=np.int32([1, 0]))
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[9, 0], filled(6).chunk.state)
    images = jax.jit(
        lambda state: [
            each.observation(GAME.observe(state)) for each in GAME.symmetries
        ]
    )(state)
    return filled(6), only, set(as_bytes(images))


def as_bytes(observations):
    return [np.asarray(seen).tobytes() for seen in observations]


def test_every_symmetry_of_a_position_is_sampled_in_small_batches_too(one_position):
    replay, only, images = one_position
    batch = draw(GAME, replay, only, jax.random.key(0), 64)
    assert set(as_bytes(batch.observation)) == images
    seen = set()
    for seed in range(40):
        batch = draw(GAME, replay, only, jax.random.key(seed), 3)
        assert {len(leaf) for leaf in jax.tree.leaves(batch)} == {3}
        seen |= set(as_bytes(batch.observation))
    assert seen == images


def test_a_small_batch_needs_a_key(one_position):
    replay, only, _ = one_position
    row = np.zeros(3, np.int32)
    sample = Sample(row, row, np.ones(3, np.float32))
    with pytest.raises(ValueError, match="rng_key must be given for a batch of 3 "):
        jax.eval_shape(functools.partial(make_batch, GAME), replay, only, sample)


def test_only_eligible_positions_are_sampled():
    batch = draw(GAME, filled(2), indexed(2), jax.random.key(1), 64)
    win_or_loss = np.asarray(batch.targets.value)[:, [0, 2]].sum(axis=-1)
    np.testing.assert_array_equal(win_or_loss, np.ones(64))


def test_uniform_draws_are_all_eligible_positions_and_no_others():
    # Of 4 rows and 3 games; the window starts at row 2.
    index = Index(
        first=np.int32(2),
        lengths=np.array([3, 0, 1]),
        is_new=np.zeros((4, 3), bool),
        value_target=np.zeros((4, 3, 3)),
        last=None,
    )
    sampler = uniform_sampler()

    @jax.jit
    def choose(index, rng_key):
        state = sampler.init((4, 3))
        return sampler.choose(state, index, rng_key, 4096), index.is_eligible

    sample, is_eligible = choose(index, jax.random.key(0))
    drawn = np.zeros((4, 3))
    np.add.at(drawn, (sample.row, sample.slot), 1 / 4096)
    eligible = np.zeros((4, 3))
    eligible[[2, 3, 0, 2], [0, 0, 0, 2]] = 1 / 4
    np.testing.assert_array_equal(is_eligible, eligible > 0)
    np.testing.assert_allclose(drawn, eligible, atol=0.03)
    np.testing.assert_array_equal(sample.weight, np.ones(4096))


def final_board(state, final_state):
    """Returns the final board, as the player to move sees it; NaN without one."""
    board, mover = GAME.board(final_state), state.current_player
    seen = jnp.stack([board == mover, board == 1 - mover], axis=-1)
    return seen / final_state.terminated


END = AuxiliaryHead(
    name="end",
    make=lambda shape, rngs: nnx.Linear(shape[0], 9, rngs=rngs),
    target=final_board,
    loss=lambda outputs, targets: (outputs - targets).mean(axis=-1),
    transform=lambda symmetry, targets: symmetry.observation(targets),
)


def draw_with_ends(replay, index):
    key = jax.random.key(0)
    return jax.device_get(draw(GAME, replay, index, key, 64, auxiliary=(END,)))


def test_auxiliary_targets_use_the_final_position_and_the_same_symmetry():
    # With this short horizon, moves of games in progress can also be sampled.
    index = indexed(6, td_lambda=0.5, horizon=1, finds_ends=True)
    batch = draw_with_ends(filled(6), index)
    end, now, ended = batch.targets.auxiliary["end"], batch.observation, batch.has_ended
    assert 0 < ended.sum() < 64
    assert (end[~ended] == 0).all()
    value = np.asarray(filled(6).chunk.value)[batch.sample.row, batch.sample.slot]
    # In slot 0 the fourth game, from move 15 on, is in progress; in slot 1 no game is.
    in_progress = (np.rint(100 * value) >= 15) & (batch.sample.slot == 0)
    np.testing.assert_array_equal(ended, ~in_progress)
    # Marks are never removed.
    assert (end[ended] >= now[ended]).all()
    stones = end[ended].sum(axis=(1, 2, 3))
    assert stones.tolist() == np.where(batch.sample.slot[ended] == 0, 5, 9).tolist()


def test_a_game_that_was_resigned_has_no_final_position():
    replay = filled(6)
    resigned = np.array(replay.chunk.terminated)
    # The row of the newest game of slot 0, from move 15 on, which has three moves.
    values = np.asarray(replay.chunk.value)[:, 0]
    row = int(np.flatnonzero(np.rint(100 * values) == 17)[0])
    resigned[row, 0] = True
    chunk = replay.chunk._replace(terminated=resigned)
    replay = dataclasses.replace(replay, chunk=chunk)
    count = np.int32(6 * T)
    settings = {"td_lambda": 1.0, "horizon": 9, "finds_ends": True}
    _, index, _ = index_of(replay, count, np.int32(CAPACITY), **settings)
    batch = draw_with_ends(replay, index)
    move = np.rint(100 * np.asarray(replay.chunk.value)[batch.sample.row, 0])
    is_resigned = (batch.sample.slot == 0) & (move >= 15)
    assert 0 < is_resigned.sum() < 64
    np.testing.assert_array_equal(batch.has_ended, ~is_resigned)
    assert (batch.targets.auxiliary["end"][is_resigned] == 0).all()


def test_value_targets_of_another_shape_are_refused():
    swapped = ValueTarget(lambda moves: jnp.zeros((*moves.reward.T.shape, 3)), 1)
    with pytest.raises(ValueError, match=r"must return \(12, 2, 3\).*\(2, 12, 3\)"):
        jax.eval_shape(
            functools.partial(make_index, value_target=swapped),
            filled(1),
            np.int32(3),
            np.int32(3),
        )


def test_auxiliary_heads_need_an_index_with_ends():
    with pytest.raises(ValueError, match="finds_ends=True"):
        draw_with_ends(filled(6), indexed(6))
