"""Reads games from files in any of the formats that azjax knows."""

import codecs
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from azjax.games import saved_game
from azjax.games.core import Game
from azjax.games.game_record import (
    JSON_LINES,
    GameRecord,
    GameText,
    RecordFormat,
)
from azjax.games.host import compiled, first_state, next_state, rewards
from azjax.games.registry import available, find_class, make

MAX_BYTES = 2**28  # of a file
_LONGEST_MOVE = 40  # characters; more are no move of any game
_NUMBER = re.compile(r"\d+\.+")  # of a move


def read_games(
    path: str | os.PathLike[str], game: Game | None = None
) -> Iterator[tuple[Game, GameRecord]]:
    """Yields the games of a file.

    The suffix names the format: that of a game, such as `.pgn` and `.sgf`, or `.jsonl`
    for lines of JSON as the arena writes them. Other files are saved games of azjax, or
    have a game in each line, its moves in the notation of `game`. Of a game that has a
    result, moves after the end by the rules are left out.

    Args:
        path: the file.
        game: the game, whose options replace those in the file.

    Raises:
        ValueError: the file or one of its games cannot be read, or is of another game,
            or has an illegal move; the message names the file and the place.
    """
    path = Path(path)
    record_format = _format_of(path.suffix.removeprefix(".").lower())
    text = _read(path, (record_format or JSON_LINES).decode)
    if text.startswith(saved_game.HEAD):
        saved, actions = saved_game.load(path, game)
        yield make(saved.game), _saved_record(saved, actions)
        return
    if record_format is None and game is None:
        known = ", ".join(f".{suffix}" for suffix in _formats())
        raise ValueError(
            f"{path} has no suffix of a file of games ({known}): if each line has the "
            "moves of a game, give the game"
        )
    read = _lines if record_format is None else record_format.read
    pairs: dict[str, tuple[Game, Game]] = {}  # a game, and the same compiled
    try:
        for found in read(text):
            if found.game not in pairs:
                made = _game_of(found, game)
                pairs[found.game] = made, compiled(made)
            made, fast = pairs[found.game]
            yield made, _replayed(fast, found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_game(text: str, game: Game) -> GameRecord:
    """Returns the first game of a text.

    Args:
        text: a saved game of azjax, a file of games in a format that `game` has, such
            as PGN, lines of JSON as the arena writes them, or the moves of one game.
        game: the game; faster if it is `compiled`.

    Raises:
        ValueError: the game cannot be read, or is of another game, or has an illegal
            move.
    """
    text = text.removeprefix("\ufeff").strip()
    if text.startswith(saved_game.HEAD):
        return _saved_record(*saved_game.parse(text, game))
    for each in (JSON_LINES, game.record_format):
        if re.match(each.head, text):
            found = next(each.read(text), None)
            break
    else:
        found = next(_lines(" ".join(text.split())), None)  # in one line
    if found is None or not found.moves:
        raise ValueError("the text has no moves of a game")
    name = found.game.partition(":")[0]
    if name not in ("", game.name):  # no game is made from a foreign name
        raise ValueError(f"{found.place} is of {name[:40]!r}, not of {game!r}")
    _game_of(found, game)
    return _replayed(game, found)


def _read(path: Path, decode: Callable[[bytes], str]) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES:,} bytes: divide it")
    try:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return content.decode("utf-16")
        if b"\0" in content:
            raise ValueError("it is not a text file")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    try:
        return decode(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _formats() -> dict[str, RecordFormat]:
    """Returns the formats of the registered games by suffix."""
    formats = (find_class(name).record_format for name in available())
    return {each.suffix: each for each in formats}


def _format_of(suffix: str) -> RecordFormat | None:
    return _formats().get(suffix)


def _saved_record(saved: saved_game.SavedGame, actions: list[int]) -> GameRecord:
    results = {text: int(pair[0]) for pair, text in saved_game.RESULTS.items()}
    fault = saved.result_text if saved.is_forfeit else ""
    return GameRecord(saved.players, actions, results.get(saved.result), fault)


def _lines(text: str) -> Iterator[GameText]:
    """Yields a game for each line of moves; numbers such as `1.` are left out."""
    for number, line in enumerate(text.splitlines(), 1):
        moves = [word for word in line.split() if not _NUMBER.fullmatch(word)]
        if moves:
            yield GameText(f"line {number}", "", ("?", "?"), moves, None)


def _game_of(found: GameText, wanted: Game | None) -> Game:
    """Returns the game to replay a record in.

    Raises:
        ValueError: the record is of an unknown game, or not of the wanted one.
    """
    if not found.game and wanted is not None:
        return wanted
    try:
        named = make(found.game)
    except ValueError as error:
        raise ValueError(f"{found.place}: {error}") from None
    if wanted is None:
        return named
    same_board = named.observation_shape[:2] == wanted.observation_shape[:2]
    if named.name != wanted.name or not same_board:
        raise ValueError(f"{found.place} is of {named!r}, not of {wanted!r}")
    return wanted


def _replayed(game: Game, found: GameText) -> GameRecord:
    """Returns a record after playing its moves, to the end by the rules."""
    state, actions = first_state(game), []
    for number, text in enumerate(found.moves, 1):
        if state.terminated and found.result is not None:
            break  # such as a third pass in Go, or a draw that nobody claimed in chess
        short = text if len(text) <= _LONGEST_MOVE else f"{text[:_LONGEST_MOVE]}..."
        try:
            actions.append(game.text_to_action(state, short))
        except ValueError as error:
            raise ValueError(f"{found.place}: move {number}: {error}") from None
        state = next_state(game, state, actions[-1])
    result = found.result
    if result is None and state.terminated:
        result = int(rewards(game, state)[0])
    return GameRecord(
        found.names,
        actions,
        result,
        found.fault,
        found.opening_moves,
        found.values[: len(actions)],
    )
