"""Games kept as text: SGF for Go, PGN for chess, lines of JSON for all others."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax.arena import pgn, sgf
from azjax.arena.records import RESULTS, FinishedGame, MatchResult
from azjax.games import Game


class Format(NamedTuple):
    """How games are written.

    suffix: of the file.
    write: returns the text of some games.
    """

    suffix: str
    write: Callable[[Game, Sequence[FinishedGame]], str]


def to_json_lines(game: Game, finished: Sequence[FinishedGame]) -> str:
    """Returns games as lines of JSON, which `read_games` reads.

    Each has the `game`, the `players`, player 0 first, the `result`, `1-0`, `1/2-1/2`
    or `0-1`, the `moves` in the notation of the game, of which the first
    `opening_moves` were made at random, and where the loser forfeited or resigned why,
    as `forfeit`.
    """
    texts = _move_texts(game, [ended.moves for ended in finished])
    lines = []
    for ended, moves in zip(finished, texts, strict=True):
        line = {
            "game": repr(game),
            "players": ended.names,
            "result": RESULTS[ended.result],
            "moves": " ".join(moves),
            "opening_moves": ended.opening_moves,
        }
        lines.append(line | ({"forfeit": ended.fault} if ended.fault else {}))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


FORMATS = {"go": Format("sgf", sgf.to_sgf), "chess": Format("pgn", pgn.to_pgn)}
_MOVE_LISTS = Format("jsonl", to_json_lines)


def games_file(directory: Path, game: Game) -> Path:
    """Returns where in a directory the games are kept."""
    return directory / f"games.{FORMATS.get(game.name, _MOVE_LISTS).suffix}"


def append_games(
    directory: Path, game: Game, names: tuple[str, str], result: MatchResult
) -> None:
    """Adds the games of a match to those kept in a directory.

    Args:
        directory: which must be there.
        game: what was played.
        names: of player and opponent.
        result: their games.

    Raises:
        OSError: the file cannot be written.
    """
    text = FORMATS.get(game.name, _MOVE_LISTS).write(game, result.finished(names))
    with games_file(directory, game).open("a", encoding="utf-8") as file:
        file.write(text)


def read_games(path: str | os.PathLike[str]) -> Iterator[tuple[Game, FinishedGame]]:
    """Reads games that were written as lines of JSON.

    Raises:
        ValueError: the file cannot be read, or a line is wrong; the message says which.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ValueError(f"{path}: {reason}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _read_game(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None


def _read_game(line: str) -> tuple[Game, FinishedGame]:
    try:
        found = json.loads(line)
        name, (first, second) = found["game"], found["players"]
        result, texts = found["result"], found["moves"].split()
        fault = str(found.get("forfeit", ""))
        opening_moves = int(found.get("opening_moves", 0))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            "no game: a line has game, players, result and moves "
            f"({type(error).__name__}: {error})"
        ) from None
    if result not in RESULTS.values():
        raise ValueError(f"the result is {' or '.join(RESULTS.values())}: {result!r}")
    game = games.make(str(name))
    state, moves = game.init(), []
    for number, text in enumerate(texts, 1):
        try:
            action = game.text_to_action(state, text)
        except ValueError as error:
            raise ValueError(f"move {number}: {error}") from None
        state, moves = _step_one(game, state, jnp.int32(action)), [*moves, action]
    outcome = next(key for key, value in RESULTS.items() if value == result)
    names = (str(first), str(second))
    return game, FinishedGame(names, moves, outcome, fault, opening_moves)


def _move_texts(game: Game, moves: Sequence[Sequence[int]]) -> list[list[str]]:
    """Returns the moves of games as people write them."""
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


@jax.jit(static_argnames="game")
def _step_one(game, state, action):
    return game.step(state, action)
