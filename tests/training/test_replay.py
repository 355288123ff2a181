import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.training.replay import empty_replay, insert, make_index, sample
from azjax.training.self_play import Chunk

GAME = games.make("tic_tac_toe")
T, B, NUM_CHUNKS = 3, 2, 4
CAPACITY = T * NUM_CHUNKS
# Three in the left column for the first player in five moves, and a drawn game.
FIRST_WINS = [0, 1, 3, 2, 6]
DRAWN = [0, 1, 2, 4, 3, 5, 7, 6, 8]
index_of = jax.jit(make_index, static_argnames="trace")
insert_into = jax.jit(insert)
step = jax.jit(GAME.step)
draw = jax.jit(sample, static_argnums=(0, 4))


def play(*slots):
    """Plays lines of moves in B slots, in each one game after the other.

    Returns:
        A Chunk of as many moves as the slots have; `value` counts them.
    """
    columns = []
    for lines in slots:
        rows = []
        for moves in lines:
            state = GAME.init()
            for action in moves:
                after = step(state, action)
                reward = GAME.rewards(after)[state.current_player]
                policy = jax.nn.one_hot(action, 9, dtype=jnp.float16)
                value = jnp.float32(len(rows) / 100)
                rows.append(
                    Chunk(state, policy, value, value, reward, after.terminated)
                )
                state = after
        columns.append(jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *columns)


def filled(num_chunks, moves):
    replay = empty_replay(GAME, num_chunks=NUM_CHUNKS, moves_per_chunk=T, num_games=B)
    for chunk in range(num_chunks):
        part = jax.tree.map(lambda leaf: leaf[chunk * T : (chunk + 1) * T], moves)  # noqa: B023
        replay = insert_into(replay, part, jnp.int32(chunk))
    return replay


def eligible(replay, num_chunks, window=CAPACITY, trace=1.0):
    """The moves' numbers, in each slot, that can be drawn, and the index."""
    index = index_of(replay, jnp.int32(num_chunks * T), jnp.int32(window), trace=trace)
    flat = np.asarray(index.position[: index.size])
    assert len(set(flat.tolist())) == len(flat)
    value = np.asarray(replay.chunk.value).ravel()[flat]
    moves = np.rint(100 * value).astype(int)
    return [sorted(moves[flat % B == slot].tolist()) for slot in range(B)], index


@pytest.fixture(scope="module")
def moves():
    """18 moves in two slots: 5 + 5 + 5 + 3 and 9 + 9."""
    return play([FIRST_WINS] * 3 + [FIRST_WINS[:3]], [DRAWN] * 2)


def test_nothing_can_be_drawn_before_a_game_has_ended(moves):
    numbers, index = eligible(filled(1, moves), 1)
    assert numbers == [[], []]
    assert index.size == 0


def test_only_positions_of_finished_games_can_be_drawn(moves):
    numbers, _ = eligible(filled(2, moves), 2)
    assert numbers == [[0, 1, 2, 3, 4], []]
    numbers, _ = eligible(filled(3, moves), 3)
    assert numbers == [list(range(5)), list(range(9))]


def test_the_newest_chunk_takes_the_oldest_ones_place(moves):
    replay = filled(6, moves)
    held = np.rint(100 * replay.chunk.value[:, 0]).astype(int)
    assert held.tolist() == [12, 13, 14, 15, 16, 17, 6, 7, 8, 9, 10, 11]
    numbers, _ = eligible(replay, 6)
    assert numbers == [list(range(6, 15)), list(range(6, 18))]


def test_only_the_newest_moves_of_the_window_can_be_drawn(moves):
    numbers, _ = eligible(filled(6, moves), 6, window=5)
    assert numbers == [[13, 14], [13, 14, 15, 16, 17]]


def test_a_game_that_spans_chunks_gets_its_later_result(moves):
    _, index = eligible(filled(3, moves), 3)
    result = np.asarray(index.result).reshape(CAPACITY, B, 3)
    win, tie, loss = np.eye(3)
    np.testing.assert_array_equal(result[:5, 0], [win, loss, win, loss, win])
    np.testing.assert_array_equal(result[:9, 1], [tie] * 9)


def test_results_are_found_across_the_rings_end(moves):
    _, index = eligible(filled(6, moves), 6)
    result = np.asarray(index.result).reshape(CAPACITY, B, 3)
    win, _, loss = np.eye(3)
    # Moves 10 to 14 are a game; the last three of them lie at the ring's beginning.
    np.testing.assert_array_equal(result[[10, 11, 0, 1, 2], 0], [win, loss] * 2 + [win])


def test_samples_are_true_positions_under_true_symmetries(moves):
    replay = filled(6, moves)
    _, index = eligible(replay, 6)
    batch = draw(GAME, replay, index, jax.random.key(0), 64)
    assert batch.observation.shape == (64, 3, 3, 2)
    empty = batch.observation.sum(axis=-1).reshape(64, 9) == 0
    # In tic-tac-toe the empty cells are the legal moves, whatever the symmetry.
    np.testing.assert_array_equal(batch.legal_action_mask, empty)
    chosen = batch.policy_target.argmax(axis=-1)
    assert np.take_along_axis(np.asarray(empty), np.asarray(chosen)[:, None], 1).all()
    np.testing.assert_array_equal(batch.policy_target.sum(axis=-1), np.ones(64))
    assert batch.policy_target.dtype == jnp.float32


def test_every_symmetry_of_a_position_is_drawn(moves):
    replay = filled(6, moves)
    _, index = eligible(replay, 6)
    only = index._replace(
        position=jnp.full_like(index.position, 9 * B), size=jnp.int32(1)
    )
    batch = draw(GAME, replay, only, jax.random.key(0), 64)
    state = jax.tree.map(lambda leaf: leaf[9, 0], replay.chunk.state)
    images = {
        np.asarray(symmetry.observation(GAME.observe(state))).tobytes()
        for symmetry in GAME.symmetries
    }
    assert {np.asarray(image).tobytes() for image in batch.observation} == images


def test_only_what_can_be_drawn_is_drawn(moves):
    replay = filled(2, moves)
    _, index = eligible(replay, 2)
    batch = draw(GAME, replay, index, jax.random.key(1), 64)
    win_or_loss = np.asarray(batch.result_target)[:, [0, 2]].sum(axis=-1)
    np.testing.assert_array_equal(win_or_loss, np.ones(64))


def test_a_batch_need_not_be_a_multiple_of_the_symmetries(moves):
    replay = filled(2, moves)
    _, index = eligible(replay, 2)
    batch = draw(GAME, replay, index, jax.random.key(0), 3)
    assert {len(part) for part in batch} == {3}
