"""Files of finished games, in the record format of the game."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from azjax import games
from azjax.arena.results import MatchResult
from azjax.games import Game
from azjax.games.game_record import RESULTS, GameRecord
from azjax.games.host import first_state, next_state


def games_file(directory: Path, game: Game) -> Path:
    """Returns the path of the games in a directory."""
    return directory / f"games.{game.record_suffix}"


def append_games(
    directory: Path, game: Game, names: tuple[str, str], result: MatchResult
) -> None:
    """Appends the games of a match to the file in a directory.

    Args:
        directory: an existing directory.
        game: the game.
        names: of player and opponent.
        result: their games.

    Raises:
        OSError: the file cannot be written.
    """
    text = game.records_to_text(result.game_records(names))
    with games_file(directory, game).open("a", encoding="utf-8") as file:
        file.write(text)


def read_games(path: str | os.PathLike[str]) -> Iterator[tuple[Game, GameRecord]]:
    """Reads games from a file of JSON lines.

    Raises:
        ValueError: the file or a line cannot be read; the message names the line.
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


def _read_game(line: str) -> tuple[Game, GameRecord]:
    try:
        found = json.loads(line)
        name, (first, second) = found["game"], found["players"]
        result, texts = found["result"], found["moves"].split()
        fault = str(found.get("forfeit", ""))
        opening_moves = int(found.get("opening_moves", 0))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            "not a game: a line has game, players, result and moves "
            f"({type(error).__name__}: {error})"
        ) from None
    if result not in RESULTS.values():
        raise ValueError(f"result must be {' or '.join(RESULTS.values())}: {result!r}")
    game = games.make(str(name))
    state, moves = first_state(game), []
    for number, text in enumerate(texts, 1):
        try:
            action = game.text_to_action(state, text)
        except ValueError as error:
            raise ValueError(f"move {number}: {error}") from None
        state = next_state(game, state, action)
        moves.append(action)
    outcome = next(key for key, value in RESULTS.items() if value == result)
    names = (str(first), str(second))
    return game, GameRecord(names, moves, outcome, fault, opening_moves)
