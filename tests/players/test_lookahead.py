import jax
import jax.numpy as jnp
import numpy as np
from players.engines import position

from azjax import games
from azjax.games.host import next_state
from azjax.players.lookahead import after_each_move, result_of_mover

GAME = games.make("tic_tac_toe")


def test_every_legal_move_is_evaluated_in_chunks_of_any_size():
    # X X .
    # O O .   and the first player is to move.
    # . . .
    def look(state, portion):
        return after_each_move(
            GAME,
            state,
            lambda state: (state.terminated, GAME.board(state).sum(dtype=jnp.int32)),
            (True, 100),
            portion=portion,
        )

    sizes = (1, 2, 4, 9, 100)
    together = jax.jit(lambda state: [look(state, portion) for portion in sizes])
    for seen in together(position(GAME, [0, 3, 1, 4])):
        np.testing.assert_array_equal(seen[0], [1, 1, 1, 1, 1, 0, 0, 0, 0])
        # Empty cells are -1, the second player's stones 1.
        np.testing.assert_array_equal(seen[1], [100, 100, -2, 100, 100, *[-2] * 4])


def test_results_are_for_the_player_who_moved():
    before = position(GAME, [0, 3, 1, 4, 8])
    result = jax.jit(result_of_mover, static_argnums=0)
    assert result(GAME, before, next_state(GAME, before, 5)) == 1
    assert result(GAME, before, before) == 0


def test_lookahead_can_be_vmapped(after):
    states = after([0], [0, 1, 2])
    look = jax.vmap(
        lambda state: after_each_move(GAME, state, lambda _: True, False, portion=4)
    )
    seen = np.asarray(jax.jit(look)(states))
    np.testing.assert_array_equal(seen.sum(axis=1), [8, 6])
