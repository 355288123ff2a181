import functools

import jax
import numpy as np
import pytest
from players.engines import position

from azjax import games
from azjax.arena.exhaustive import solve
from azjax.arena.openings import suite
from azjax.players import MinimaxPlayer, choose

TIC_TAC_TOE = games.make("tic_tac_toe")
CONNECT_FOUR = games.make("connect_four")
KEY = jax.random.key(0)
BATCH_SIZE = 4  # one batch size for each game and depth saves compilations


def repeated(state, number):
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (number,)), state)


@pytest.fixture(scope="module")
def solution():
    return solve(TIC_TAC_TOE)


@pytest.fixture(scope="module")
def searched():
    """Returns random positions and the choices there."""

    @functools.cache
    def search(name, depth, num_moves):
        game = games.make(name)
        states = suite(game, jax.random.key(depth), BATCH_SIZE, num_moves).states
        choice = choose(MinimaxPlayer(game, depth), KEY, states)
        return game, states, jax.device_get(choice)

    search("connect_four", 5, 25)  # for several tests
    return search


def negamax(game, states, depth):
    """The scores `[N, A]` of all moves, by search of the whole tree."""

    @jax.jit
    @jax.vmap
    def play(state, actions):
        """Returns what is found after each of some moves."""

        def move(state, action):
            after = game.step(state, action)
            is_legal = game.legal_action_mask(state)[action]
            result = game.rewards(after)[state.current_player.astype(int)]
            return after, (is_legal, after.terminated, result, game.evaluate(after))

        return jax.lax.scan(move, state, actions)[1]

    shape = (BATCH_SIZE, *(game.num_actions,) * depth)
    first, *paths = np.indices(shape, np.int32).reshape(len(shape), -1)
    firsts = jax.tree.map(lambda leaf: np.asarray(leaf)[first], states)
    found = jax.device_get(play(firsts, np.stack(paths, axis=1)))
    for level in reversed(range(depth)):
        # All lines with the same moves up to here have the same numbers.
        chosen = (..., *(0,) * (depth - 1 - level))
        is_legal, is_over, result, value = (
            leaf[:, level].reshape(shape)[chosen] for leaf in found
        )
        value = -value if level == depth - 1 else -scores.max(axis=-1)  # noqa: F821
        scores = np.where(is_over, result * (2 - (level + 1) / 1024), value)
        scores = np.where(is_legal, scores, -np.inf)
    return scores


@pytest.mark.parametrize(
    ("name", "depth", "num_moves"),
    [
        ("tic_tac_toe", 3, 4),  # with several moves that win equally soon
        pytest.param("connect_four", 4, 16, marks=pytest.mark.slow),
        ("connect_four", 5, 25),
        pytest.param("gomoku:4,4,3", 3, 3, marks=pytest.mark.slow),
        pytest.param("breakthrough:4,3", 2, 5, marks=pytest.mark.slow),
    ],
)
def test_alpha_beta_finds_the_minimax_moves(name, depth, num_moves, searched):
    game, states, choice = searched(name, depth, num_moves)
    scores = negamax(game, states, depth)
    top = scores.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(choice.value, top[:, 0].clip(-1, 1), atol=1e-6)
    np.testing.assert_array_equal(choice.policy > 0, scores >= top - 1e-6)


def assert_perfect(solution, rows, depth):
    """Checks the choices in some positions; moves that keep the value never lose."""
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], solution.states)
    choice = jax.device_get(choose(MinimaxPlayer(TIC_TAC_TOE, depth), KEY, states))
    np.testing.assert_array_equal(choice.value, solution.values[rows])
    keeps_value = solution.action_values == solution.values[:, None]
    assert keeps_value[rows][choice.policy > 0].all()
    assert (choice.policy > 0).any(axis=1).all()


@pytest.mark.slow
def test_at_full_depth_tic_tac_toe_is_played_perfectly_from_every_position(solution):
    """From one of its images."""
    boards = np.asarray(jax.jit(jax.vmap(TIC_TAC_TOE.board))(solution.states))
    turned = [np.rot90(boards, turns, axes=(1, 2)) for turns in range(4)]
    images = np.stack(
        [image.reshape(-1, 9) for board in turned for image in (board, board[:, ::-1])]
    )
    codes = (images @ 3 ** np.arange(9)).min(axis=0)
    _, first = np.unique(codes, return_index=True)
    rows = first[~solution.states.terminated[first]]
    assert len(rows) == 627  # the known number of unfinished positions
    # A batch takes as long as its longest search.
    is_early = solution.num_moves[rows] < 4
    for part in (rows[is_early], rows[~is_early]):
        assert_perfect(solution, part, 9)


def test_tic_tac_toe_is_played_perfectly_after_six_moves(solution):
    rows = np.flatnonzero((solution.num_moves >= 6) & ~solution.states.terminated)
    assert_perfect(solution, rows, 3)


@pytest.mark.parametrize(
    ("moves", "value"),
    [
        # Three discs in column 0, and two in the middle that would win later.
        ((0, 6, 0, 6, 0, 1, 3, 1, 4, 1), 1),
        # Column 0 must be blocked, and then a fork in the bottom row wins.
        ((0, 6, 0, 6, 3, 3, 4, 4, 0), -1),
    ],
)
def test_it_prefers_fast_wins_and_late_losses(moves, value):
    state = position(CONNECT_FOUR, moves)
    choice = choose(MinimaxPlayer(CONNECT_FOUR, 5), KEY, repeated(state, BATCH_SIZE))
    np.testing.assert_array_equal(choice.policy, [[1, 0, 0, 0, 0, 0, 0]] * BATCH_SIZE)
    np.testing.assert_array_equal(choice.value, [value] * BATCH_SIZE)


def test_equally_good_moves_are_equally_likely_and_no_key_is_used_twice():
    states = repeated(TIC_TAC_TOE.init(), 900)
    with jax.debug_key_reuse(True):  # the reuse of a key raises an error
        choice = jax.device_get(
            jax.jit(MinimaxPlayer(TIC_TAC_TOE, 1).choose)(KEY, states)
        )
    np.testing.assert_allclose(choice.policy[0], np.full(9, 1 / 9), rtol=1e-6)
    counts = np.bincount(choice.action, minlength=9)
    # Six standard deviations of a binomial count.
    np.testing.assert_allclose(counts, 100, atol=6 * np.sqrt(100 * 8 / 9))


def test_the_result_does_not_depend_on_the_rest_of_the_batch(searched):
    game, states, together = searched("connect_four", 5, 25)
    player = MinimaxPlayer(game, 5)
    for index in range(BATCH_SIZE):
        state = jax.tree.map(lambda leaf, i=index: np.asarray(leaf)[i], states)
        alone = jax.device_get(choose(player, KEY, repeated(state, BATCH_SIZE)))
        for name in ("policy", "value"):
            found = getattr(together, name)[index]
            np.testing.assert_array_equal(getattr(alone, name), [found] * BATCH_SIZE)


@pytest.mark.slow
def test_a_mate_in_two_is_found_in_chess():
    game = games.make("chess")
    # Two rooks against a bare king.
    state = game.from_fen("7k/8/8/8/8/8/R7/1R4K1 w - - 0 1")
    states = jax.tree.map(lambda leaf: leaf[None], state)
    choice = choose(MinimaxPlayer(game, 3), KEY, states)
    assert choice.value[0] == 1
    assert game.action_to_text(state, int(choice.action[0])) in {"a2a7", "b1b7"}
