"""What a network sees of a chess position."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.chess.moves import attacked
from azjax.games.chess.position import Position, cells_of, passing_square

NUM_BOARD_PLANES = 29
_ALL, _NONE = np.uint32(0xFFFFFFFF), np.uint32(0)


def board_planes(position: Position) -> jax.Array:
    """Returns `[8, 8, 29]` float32, 0 or 1, as the player to move sees the board.

    See `Chess.observe`.
    """
    mine = position.mine
    rights = [position.castling >> right & 1 == 1 for right in range(4)]
    boards = [
        *(kind & mine for kind in position.kinds),
        *(kind & ~mine for kind in position.kinds),
        *(jnp.where(right, np.full(2, _ALL), _NONE) for right in rights),
        passing_square(position.en_passant),
        *attacked(position).reshape(-1, 2),
    ]
    planes = cells_of(jnp.stack(boards, axis=-1)).reshape(8, 8, NUM_BOARD_PLANES)
    return planes.astype(jnp.float32)
