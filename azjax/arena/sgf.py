"""Games of Go as SGF."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.records import FinishedGame
from azjax.games import Game
from azjax.games.go import Go

_LETTERS = "abcdefghijklmnopqrs"


def to_sgf(game: Game, finished: Sequence[FinishedGame]) -> str:
    """Returns games of Go as an SGF collection (FF[4], red-bean.com/sgf).

    Raises:
        TypeError: the game is another.
    """
    if not isinstance(game, Go):
        raise TypeError(f"not Go: {game!r}")
    longest = max(len(ended.moves) for ended in finished)
    moves = np.full((len(finished), longest), -1, np.int32)
    for row, ended in zip(moves, finished, strict=True):
        row[: len(ended.moves)] = ended.moves
    margins = np.asarray(_margins(game, jnp.asarray(moves)))
    return "".join(
        _tree(game, ended, float(margin))
        for ended, margin in zip(finished, margins, strict=True)
    )


def _tree(game: Go, ended: FinishedGame, margin: float) -> str:
    winner = {1: "B+", 0: "", -1: "W+"}[ended.result]
    by = f"{abs(margin):g}"
    if ended.fault:
        by = "F" if ended.is_forfeit else "R"
    properties = {
        "FF": "4",
        "GM": "1",
        "CA": "UTF-8",
        "AP": "azjax",
        "SZ": str(game.size),
        "KM": f"{game.komi:g}",
        "RU": "Tromp-Taylor",
        "PB": ended.names[0],
        "PW": ended.names[1],
        "RE": winner + by if winner else "0",
    }
    if ended.fault:
        properties["GC"] = ended.fault
    root = "".join(f"{name}[{_escaped(text)}]" for name, text in properties.items())
    nodes = [
        f";{'BW'[number % 2]}[{_point(game, action)}]"
        for number, action in enumerate(ended.moves)
    ]
    if ended.opening_moves:
        nodes[ended.opening_moves - 1] += "C[the moves so far were made at random]"
    lines = ["".join(nodes[start : start + 10]) for start in range(0, len(nodes), 10)]
    return "\n".join([f"(;{root}", *lines]) + ")\n"


def _point(game: Go, action: int) -> str:
    """Returns column and row from the top left; nothing for a pass."""
    if action == game.size**2:
        return ""
    row, column = divmod(action, game.size)
    return _LETTERS[column] + _LETTERS[row]


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("]", "\\]")


@jax.jit(static_argnames="game")
def _margins(game: Go, moves: jax.Array) -> jax.Array:
    """Returns `[N]` float32, by how many points black is ahead after the moves."""

    def play(row):
        def step(state, action):
            after = game.step(state, action)
            return jax.tree.map(
                lambda new, old: jnp.where(action >= 0, new, old), after, state
            ), None

        black, white = game.score(jax.lax.scan(step, game.init(), row)[0])
        return black - white

    return jax.vmap(play)(moves)
