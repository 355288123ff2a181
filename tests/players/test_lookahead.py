import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coin_toss import CoinToss
from compiled_games import play
from expectimax import expected_action_values
from players.engines import position

from azjax import games
from azjax.arena.exhaustive import solve
from azjax.arena.openings import suite
from azjax.games.host import legal_actions, next_state, rewards
from azjax.players import GreedyPlayer, MinimaxPlayer, choose
from azjax.players.lookahead import after_each_move

TIC_TAC_TOE = games.make("tic_tac_toe")


def test_every_legal_move_is_evaluated_in_chunks_of_any_size():
    # X X .
    # O O .   and the first player is to move.
    # . . .
    def look(state, portion):
        return after_each_move(
            TIC_TAC_TOE,
            state,
            lambda state: (
                state.terminated,
                TIC_TAC_TOE.board(state).sum(dtype=jnp.int32),
            ),
            (True, 100),
            portion=portion,
        )

    sizes = (1, 2, 4, 9, 100)
    together = jax.jit(lambda state: [look(state, portion) for portion in sizes])
    for seen in together(position(TIC_TAC_TOE, [0, 3, 1, 4])):
        np.testing.assert_array_equal(seen[0], [1, 1, 1, 1, 1, 0, 0, 0, 0])
        # Empty cells are -1, the second player's stones 1.
        np.testing.assert_array_equal(seen[1], [100, 100, -2, 100, 100, *[-2] * 4])


CONNECT_FOUR = games.make("connect_four")
NUM_GAMES = 12


@functools.cache
def compiled(game):
    return jax.jit(GreedyPlayer(game).choose)


def chosen(game, states):
    """Returns the choices; reusing a key raises an error."""
    with jax.debug_key_reuse(True):
        return jax.device_get(compiled(game)(jax.random.key(0), states))


def wins_of(game, state):
    """Returns the moves that win immediately."""
    mover = int(state.current_player)
    ends = {a: next_state(game, state, a) for a in legal_actions(game, state)}
    return {a for a, end in ends.items() if rewards(game, end)[mover] > 0}


def best_moves(game, state):
    """Returns the moves that a greedy player may choose."""
    wins = wins_of(game, state)
    if wins:
        return wins
    mover, dangers = int(state.current_player), {}
    for action in legal_actions(game, state):
        after = next_state(game, state, action)
        dangers[action] = len(wins_of(game, after))
        if after.terminated:
            dangers[action] = 0 if rewards(game, after)[mover] == 0 else 10**6
    return {a for a, danger in dangers.items() if danger == min(dangers.values())}


@pytest.mark.parametrize(
    ("name", "num_moves"),
    [
        ("connect_four", 12),
        pytest.param("gomoku:4,4,3", 4, marks=pytest.mark.slow),
        pytest.param("breakthrough:5,4", 13, marks=pytest.mark.slow),
    ],
)
def test_it_wins_or_minimizes_winning_replies_and_uses_no_key_twice(name, num_moves):
    game = games.make(name)
    states = suite(game, jax.random.key(0), NUM_GAMES, num_moves).states
    choice, kinds = chosen(game, states), set()
    for index in range(NUM_GAMES):
        state = jax.tree.map(lambda leaf, index=index: leaf[index], states)
        best = best_moves(game, state)
        assert set(np.flatnonzero(choice.policy[index]).tolist()) == best
        assert int(choice.action[index]) in best
        kinds.add(float(choice.value[index]))
    assert len(kinds) > 1  # otherwise the positions test too little


@pytest.mark.parametrize(
    ("moves", "value"),
    [
        ((), 0),
        ((0, 6, 0, 6, 0, 6), 1),  # three discs in column 0
        ((0, 6, 0, 6, 0), 0),  # the opponent can block them
        ((2, 0, 3, 0, 4), -1),  # no block is enough
    ],
)
def test_its_value_is_1_for_a_win_and_minus_1_for_a_lost_position(moves, value):
    state = position(CONNECT_FOUR, moves)
    states = jax.tree.map(lambda leaf: np.stack([leaf] * NUM_GAMES), state)
    choice = chosen(CONNECT_FOUR, states)
    np.testing.assert_array_equal(choice.value, value)
    if value == -1:  # of two threats it blocks one
        np.testing.assert_allclose(choice.policy[0], [0, 0.5, 0, 0, 0, 0.5, 0])


@pytest.mark.slow
def test_it_plays_a_game_of_many_actions():
    game = games.make("chess")
    # Fool's mate: 1. f3 e5 2. g4 and Qh4 mates.
    state = play(game, "f2f3 e7e5 g2g4")
    choice = chosen(game, jax.tree.map(lambda leaf: np.asarray(leaf)[None], state))
    mate = game.text_to_action(state, "d8h4")
    assert choice.action[0] == mate
    assert choice.value[0] == 1


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


# Games with chance

COIN_TOSS = CoinToss()


def late_positions():
    """Returns positions after six moves, and the expected results of the actions."""
    states = suite(COIN_TOSS, jax.random.key(0), 64, 6).states
    return states, expected_action_values(states)


@pytest.mark.slow
def test_expectimax_finds_the_best_expected_results():
    states, expected = late_positions()
    choice = jax.device_get(choose(MinimaxPlayer(COIN_TOSS, 3), KEY, states))
    top = np.nanmax(expected, axis=1)
    np.testing.assert_allclose(choice.value, top, atol=1e-4)
    np.testing.assert_array_equal(choice.policy > 0, expected > top[:, None] - 1e-6)


@pytest.mark.slow
def test_greedy_minds_the_chances_of_its_moves_and_of_the_replies():
    states, expected = late_positions()
    choice = jax.device_get(chosen(COIN_TOSS, states))
    wins = expected == 1
    is_won = wins.any(axis=1)
    np.testing.assert_array_equal(choice.value == 1, is_won)
    np.testing.assert_array_equal(choice.policy[is_won] > 0, wins[is_won])
    lost = np.nanmax(expected, axis=1) - expected[np.arange(64), choice.action]
    random = np.nanmax(expected, axis=1) - np.nanmean(expected, axis=1)
    assert lost.mean() < random.mean() / 4
