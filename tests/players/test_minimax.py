import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.arena.exhaustive import solve
from azjax.arena.openings import suite
from azjax.games.host import first_state, next_state
from azjax.players import MinimaxPlayer, choose

TIC_TAC_TOE = games.make("tic_tac_toe")
CONNECT_FOUR = games.make("connect_four")
KEY = jax.random.key(0)
BATCH_SIZE = 8  # one batch size for each game and depth saves compilations


@pytest.fixture(scope="module")
def solution():
    return solve(TIC_TAC_TOE)


@pytest.fixture(scope="module")
def perfect_choice(solution):
    """Returns the choices in all tic-tac-toe positions; arbitrary in terminated ones.

    A batch takes as long as its longest search, so emptier boards are searched
    separately.
    """
    boards = np.asarray(jax.vmap(TIC_TAC_TOE.board)(solution.states))
    stones = (boards >= 0).sum(axis=(1, 2))
    order = np.argsort(stones)
    choices = [
        choose(
            MinimaxPlayer(TIC_TAC_TOE, 9),
            KEY,
            jax.tree.map(lambda leaf, rows=rows: leaf[rows], solution.states),
        )
        for rows in np.split(order, [(stones < 4).sum()])
    ]
    back = np.argsort(order)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[back], *choices)


@jax.jit(static_argnames=("game", "depth", "num_moves"))
def negamax(game, states, depth, num_moves=1):
    """The scores `[N, A]` of all moves, by search of the whole tree."""
    num_actions = game.num_actions
    after = jax.vmap(jax.vmap(game.step, (None, 0)), (0, None))(
        states, jnp.arange(num_actions)
    )
    after = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), after)
    mover = jnp.repeat(states.current_player, num_actions)
    result = jax.vmap(game.rewards)(after)[jnp.arange(mover.size), mover]
    if depth == 1:
        value = -jax.vmap(game.evaluate)(after)
    else:
        value = -negamax(game, after, depth - 1, num_moves + 1).max(axis=-1)
    value = jnp.where(after.terminated, result * (2 - num_moves / 1024), value)
    legal = jax.vmap(game.legal_action_mask)(states)
    return jnp.where(legal, value.reshape(legal.shape), -jnp.inf)


@pytest.mark.parametrize(
    ("name", "depth", "num_moves"),
    [
        ("gomoku:4,4,3", 1, 3),
        pytest.param("connect_four", 4, 16, marks=pytest.mark.slow),
        ("connect_four", 5, 25),
        ("gomoku:4,4,3", 3, 3),
        ("breakthrough:4,3", 2, 5),
    ],
)
def test_alpha_beta_finds_the_minimax_moves(name, depth, num_moves):
    game = games.make(name)
    states = suite(game, jax.random.key(depth), BATCH_SIZE, num_moves).states
    choice = choose(MinimaxPlayer(game, depth), KEY, states)
    scores = np.asarray(negamax(game, states, depth))
    top = scores.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(choice.value, top[:, 0].clip(-1, 1), atol=1e-6)
    np.testing.assert_array_equal(np.asarray(choice.policy) > 0, scores >= top - 1e-6)


@pytest.mark.slow
def test_at_full_depth_tic_tac_toe_is_played_perfectly_from_every_position(
    solution, perfect_choice
):
    running = ~solution.states.terminated
    np.testing.assert_array_equal(
        np.asarray(perfect_choice.value)[running], solution.values[running]
    )
    chosen = (np.asarray(perfect_choice.policy) > 0) & running[:, None]
    keeps_value = solution.action_values == solution.values[:, None]
    assert keeps_value[chosen].all()
    assert chosen.any(axis=1)[running].all()


def test_tic_tac_toe_is_played_perfectly_after_four_moves(solution):
    rows = np.flatnonzero((solution.num_moves >= 4) & ~solution.states.terminated)
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    choice = choose(MinimaxPlayer(TIC_TAC_TOE, 5), KEY, states)
    np.testing.assert_array_equal(choice.value, solution.values[rows])
    chosen = np.asarray(choice.policy) > 0
    keeps_value = solution.action_values == solution.values[:, None]
    assert keeps_value[rows][chosen].all()
    assert chosen.any(axis=1).all()


@pytest.mark.slow
@pytest.mark.parametrize("player", [0, 1])
def test_at_full_depth_it_never_loses_tic_tac_toe(player, solution, perfect_choice):
    boards = np.asarray(jax.vmap(TIC_TAC_TOE.board)(solution.states)).reshape(-1, 9)
    number_of = {tuple(board): number for number, board in enumerate(boards.tolist())}
    positions, num_ends = {(-1,) * 9}, 0
    for num_moves in range(9):
        reached = set()
        for board in positions:
            moves = np.flatnonzero(np.array(board) == -1)
            if num_moves % 2 == player:
                moves = np.flatnonzero(perfect_choice.policy[number_of[board]])
            for move in moves.tolist():
                after = (*board[:move], num_moves % 2, *board[move + 1 :])
                number = number_of[after]
                if solution.states.terminated[number]:
                    outcome = int(solution.states.outcome[number])
                    assert outcome * (1, -1)[player] >= 0
                    num_ends += 1
                else:
                    reached.add(after)
        positions = reached
    assert num_ends > 10


def after(game, *actions):
    state = first_state(game)
    for action in actions:
        state = next_state(game, state, action)
    return state


def batch(*states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


@pytest.mark.parametrize(
    ("moves", "value"),
    [
        # Three discs in column 0, and two in the middle that would win three moves
        # later.
        ((0, 6, 0, 6, 0, 1, 3, 1, 4, 1), 1),
        # Column 0 must be blocked, and then a fork in the bottom row wins two moves
        # later.
        ((0, 6, 0, 6, 3, 3, 4, 4, 0), -1),
    ],
)
def test_it_prefers_fast_wins_and_late_losses(moves, value):
    states = batch(*[after(CONNECT_FOUR, *moves)] * BATCH_SIZE)
    choice = choose(MinimaxPlayer(CONNECT_FOUR, 5), KEY, states)
    np.testing.assert_array_equal(choice.policy, [[1, 0, 0, 0, 0, 0, 0]] * BATCH_SIZE)
    np.testing.assert_array_equal(choice.value, [value] * BATCH_SIZE)


def test_equally_good_moves_are_equally_likely():
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (900,)), TIC_TAC_TOE.init()
    )
    choice = jax.device_get(choose(MinimaxPlayer(TIC_TAC_TOE, 1), KEY, states))
    np.testing.assert_allclose(choice.policy[0], np.full(9, 1 / 9), rtol=1e-6)
    counts = np.bincount(choice.action, minlength=9)
    # Six standard deviations of a binomial count.
    np.testing.assert_allclose(counts, 100, atol=6 * np.sqrt(100 * 8 / 9))


def test_the_result_does_not_depend_on_the_rest_of_the_batch():
    states = suite(CONNECT_FOUR, jax.random.key(5), BATCH_SIZE, 8).states
    player = MinimaxPlayer(CONNECT_FOUR, 5)
    together = jax.device_get(choose(player, KEY, states))
    for index in range(BATCH_SIZE):
        copies = jax.tree.map(lambda leaf, i=index: leaf[[i] * BATCH_SIZE], states)
        alone = jax.device_get(choose(player, KEY, copies))
        for found, expected in (
            (together.policy, alone.policy),
            (together.value, alone.value),
        ):
            np.testing.assert_array_equal(expected, [found[index]] * BATCH_SIZE)


@pytest.mark.slow
def test_a_mate_in_two_is_found_in_chess():
    game = games.make("chess")
    # Two rooks against a bare king.
    state = game.from_fen("7k/8/8/8/8/8/R7/1R4K1 w - - 0 1")
    choice = choose(MinimaxPlayer(game, 3), KEY, batch(state))
    assert choice.value[0] == 1
    assert game.action_to_text(state, int(choice.action[0])) in {"a2a7", "b1b7"}


def test_no_key_is_used_twice():
    with jax.debug_key_reuse(True):
        jax.jit(MinimaxPlayer(TIC_TAC_TOE, 2).choose)(KEY, batch(TIC_TAC_TOE.init()))
