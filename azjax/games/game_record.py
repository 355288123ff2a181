"""Records of finished games, and their text form."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from azjax.games.core import Game

RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}  # by the reward of player 0
RESIGNED = "resigned"  # the fault of a resigned game, which is no forfeit


class GameRecord(NamedTuple):
    """The moves and the result of one finished game.

    names: names of players 0 and 1.
    moves: the actions from the initial position.
    result: 1 if player 0 won, 0 for a draw, -1 if player 1 won.
    fault: why the loser forfeited; `RESIGNED` if the loser resigned; empty if the game
        ended by the rules.
    opening_moves: number of random moves at the beginning.
    """

    names: tuple[str, str]
    moves: list[int]
    result: int
    fault: str
    opening_moves: int = 0

    @property
    def is_forfeit(self) -> bool:
        """Whether the loser made an illegal move or stopped answering."""
        return is_forfeit(self.fault)


def is_forfeit(fault: str) -> bool:
    """Returns whether the fault of a game is a forfeit."""
    return fault not in ("", RESIGNED)


def score_text(lead: float) -> str:
    """Returns a result with its margin, as `B+12.5`, `W+1`, or `0` for a draw (property
    RE of SGF, `final_score` of GTP).

    Args:
        lead: margin of player 0, B (points).
    """
    return f"{'B' if lead > 0 else 'W'}+{abs(lead):g}" if lead else "0"


def to_json_lines(game: "Game", records: Sequence[GameRecord]) -> str:
    """Returns one line of JSON per game.

    Each has the `game`, the `players`, player 0 first, the `result` (`1-0`, `1/2-1/2`
    or `0-1`), the `moves` in the notation of the game, the number of random
    `opening_moves`, and if the loser forfeited or resigned the reason, `forfeit`.
    """
    texts = _move_texts(game, [record.moves for record in records])
    lines = []
    for record, moves in zip(records, texts, strict=True):
        line = {
            "game": repr(game),
            "players": record.names,
            "result": RESULTS[record.result],
            "moves": " ".join(moves),
            "opening_moves": record.opening_moves,
        }
        lines.append(line | ({"forfeit": record.fault} if record.fault else {}))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _move_texts(game: "Game", moves: Sequence[Sequence[int]]) -> list[list[str]]:
    """Returns the moves of each game in the notation of the game."""
    longest = max(map(len, moves), default=0)
    texts: list[list[str]] = [[] for _ in moves]
    states = jax.tree.map(
        lambda leaf: np.repeat(np.asarray(leaf)[None], len(moves), axis=0), game.init()
    )
    for number in range(longest):
        actions = np.array([row[number] if number < len(row) else 0 for row in moves])
        for index, row in enumerate(moves):
            if number < len(row):
                state = jax.tree.map(lambda leaf, at=index: leaf[at], states)
                texts[index].append(game.action_to_text(state, row[number]))
        states = jax.tree.map(
            np.asarray, _step(game, states, jnp.asarray(actions, jnp.int32))
        )
    return texts


@jax.jit(static_argnames="game")
def _step(game, states, actions):
    return jax.vmap(game.step)(states, actions)
