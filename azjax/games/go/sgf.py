"""Games of Go in SGF, the Smart Game Format."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.game_record import GameRecord, score_text

if TYPE_CHECKING:
    from azjax.games.go.game import Go

_LETTERS = "abcdefghijklmnopqrs"


def to_sgf(game: "Go", records: Sequence[GameRecord]) -> str:
    """Returns games of Go as an SGF collection (FF[4], red-bean.com/sgf)."""
    longest = max(len(record.moves) for record in records)
    moves = np.full((len(records), longest), -1, np.int32)
    for row, record in zip(moves, records, strict=True):
        row[: len(record.moves)] = record.moves
    margins = np.asarray(_margins(game, jnp.asarray(moves)))
    return "".join(
        _tree(game, record, float(margin))
        for record, margin in zip(records, margins, strict=True)
    )


def _tree(game: "Go", record: GameRecord, margin: float) -> str:
    result = score_text(record.result * abs(margin))
    if record.fault:
        winner = "B" if record.result > 0 else "W"
        result = f"{winner}+{'F' if record.is_forfeit else 'R'}"
    properties = {
        "FF": "4",
        "GM": "1",
        "CA": "UTF-8",
        "AP": "azjax",
        "SZ": str(game.size),
        "KM": f"{game.komi:g}",
        "RU": "Tromp-Taylor",
        "PB": record.names[0],
        "PW": record.names[1],
        "RE": result,
    }
    if record.fault:
        properties["GC"] = record.fault
    root = "".join(f"{name}[{_escaped(text)}]" for name, text in properties.items())
    nodes = [
        f";{'BW'[number % 2]}[{_point(game, action)}]"
        for number, action in enumerate(record.moves)
    ]
    if record.opening_moves:
        nodes[record.opening_moves - 1] += "C[the moves so far were made at random]"
    lines = ["".join(nodes[start : start + 10]) for start in range(0, len(nodes), 10)]
    return "\n".join([f"(;{root}", *lines]) + ")\n"


def _point(game: "Go", action: int) -> str:
    """Returns column and row from the top left; an empty text for a pass."""
    if action == game.size**2:
        return ""
    row, column = divmod(action, game.size)
    return _LETTERS[column] + _LETTERS[row]


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("]", "\\]")


@jax.jit(static_argnames="game")
def _margins(game: "Go", moves: jax.Array) -> jax.Array:
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
