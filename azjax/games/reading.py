"""Reads games from files in any of the formats that azjax knows, and writes lines of
JSON."""

import codecs
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Annotated

from azjax.games import saved_game
from azjax.games.core import Game
from azjax.games.game_record import (
    RESULTS,
    GameRecord,
    GameText,
    RecordFormat,
    result_of,
)
from azjax.games.host import (
    compiled,
    first_state,
    legal_actions,
    legal_moves,
    move_to_word,
    next_state,
    rewards,
    word_to_move,
)
from azjax.games.registry import available, find_class, make
from azjax.settings import Within, check, check_int

MAX_BYTES = 2**28  # of a file
_LONGEST_MOVE = 40  # characters; more are no move of any game
_PASS = "pass"  # as in `Game.action_to_text`
_NUMBER = re.compile(r"(\d{1,4})\.+")  # of a move
_WORD = re.compile(r"\d{1,4}\.+|\S+")  # a number or a move
# Errors of lines of JSON that are no games.
_MALFORMED = (
    *(KeyError, TypeError, AttributeError, ValueError),
    *(OverflowError, RecursionError),
)


def to_json_lines(game: Game, records: Sequence[GameRecord]) -> str:
    """Returns one line of JSON per game.

    Each has the `game`, the `players`, player 0 first, the `result` (`1-0`, `1/2-1/2`
    or `0-1`), the `moves` in the notation of the game (outcomes of chance with `_` for
    each space), the number of random `opening_moves`, if the loser forfeited or
    resigned the reason, `forfeit`, and if any are known the `values` after the moves,
    null for one that is not.
    """
    lines = []
    for record in records:
        state, moves = first_state(game), []
        for move in record.moves:
            moves.append(move_to_word(game, state, move))
            state = next_state(game, state, move)
        line = {
            "game": repr(game),
            "players": record.names,
            "result": "*" if record.result is None else RESULTS[record.result],
            "moves": " ".join(moves),
            "opening_moves": record.opening_moves,
        }
        if record.fault:
            line["forfeit"] = record.fault
        if record.values:
            line["values"] = [
                None if value is None else round(value, 4) for value in record.values
            ]
        lines.append(line)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def from_json_lines(text: str) -> Iterator[GameText | ValueError]:
    """Yields the games of lines as `to_json_lines` writes them, or why a line is no
    game."""
    # Not `splitlines`: a name may have a line separator of Unicode.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            game, (first, second) = str(found["game"]), found["players"]
            stated, moves = str(found["result"]), found["moves"].split()
            fault = str(found.get("forfeit", ""))
            opening_moves = found.get("opening_moves", 0)
            check_int("opening_moves", opening_moves, 0)
            values = found.get("values") or []
            if not isinstance(values, list) or len(values) not in (0, len(moves)):
                raise TypeError("values must be a list, with a value for each move")
            for value in values:
                if value is not None:
                    check("values", value, Annotated[float, Within(-1, 1)])
        except _MALFORMED as error:
            yield ValueError(
                f"line {number}: not a game: a line has game, players, result and "
                "moves, and may have forfeit, opening_moves and values "
                f"({type(error).__name__}: {error})"
            )
            continue
        try:
            result = result_of(stated)
        except ValueError as error:
            yield ValueError(f"line {number}: {error}")
            continue
        names = (str(first), str(second))
        yield GameText(
            f"line {number}",
            game,
            names,
            moves,
            result,
            fault,
            opening_moves,
            tuple(values),
        )


JSON_LINES = RecordFormat("jsonl", r"\{", to_json_lines, from_json_lines)
# Set here because the format is made of functions of this module, which needs `Game`.
Game.record_format = JSON_LINES


def read_games(
    path: str | os.PathLike[str], game: Game | None = None
) -> Iterator[tuple[Game, GameRecord]]:
    """Yields the games of a file.

    The suffix names the format: that of a game, such as `.pgn` and `.sgf`, or `.jsonl`
    for lines of JSON as the arena writes them. Other files are saved games of azjax, or
    have a game in each line, its moves in the notation of `game`, with or without
    spaces; a line that begins with the number of a later move continues a game. Of a
    game that has a result, moves after the end by the rules are left out.

    Args:
        path: the file.
        game: the game, whose options replace those in the file.

    Raises:
        ValueError: the file or one of its games cannot be read, or is of another game,
            or has an illegal move; the message names the file and the place.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("games.txt").write_text("b2 a1 a3 b1 c1")
        >>> [(game, record)] = games.read_games("games.txt", games.make("tic_tac_toe"))
        >>> record.moves, record.result
        ([4, 6, 0, 7, 8], 1)
    """
    for found in game_texts(path, game):
        made = game_of(found, game)
        yield made, replayed(compiled(made), found)


def game_texts(
    path: str | os.PathLike[str], game: Game | None
) -> Iterator[GameText | ValueError]:
    """Yields the games of a file before the rules are applied, and in place of one that
    cannot be read why; see `read_games`."""
    path = Path(path)
    record_format = _formats().get(path.suffix.removeprefix(".").lower())
    text = _read(path, (record_format or JSON_LINES).decode)
    if text.startswith(saved_game.HEAD):
        texts = iter([_of_saved(saved_game.load(path, game)[0])])
    elif record_format is not None:
        texts = record_format.read(text)
    elif game is not None:
        texts = _lines(text, game)
    else:
        known = ", ".join(f".{suffix}" for suffix in _formats())
        raise ValueError(
            f"{path} has no suffix of a file of games ({known}): if each line has the "
            "moves of a game, give the game"
        )
    try:
        for found in texts:
            if isinstance(found, ValueError):
                yield ValueError(f"{path}: {found}")
            else:
                yield found._replace(place=f"{path}: {found.place}")
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
    text = text.replace("\ufeff", "").strip()
    if text.startswith(saved_game.HEAD):
        return replayed(game, _of_saved(saved_game.parse(text, game)[0]))
    for each in (JSON_LINES, game.record_format):
        if re.match(each.head, text):
            found = next(each.read(text), None)
            break
    else:
        found = next(_lines(" ".join(text.split()), game), None)  # in one line
    if isinstance(found, ValueError):
        raise found
    if found is None or not found.moves:
        raise ValueError("the text has no moves of a game")
    name = found.game.partition(":")[0]
    if name not in ("", game.name):  # no game is made from a foreign name
        raise ValueError(f"{found.place} is of {name[:40]!r}, not of {game!r}")
    game_of(found, game)
    return replayed(game, found)


def _read(path: Path, decode: Callable[[bytes], str]) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes: divide it")
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = content.decode("utf-16")
        elif b"\0" in content:
            raise ValueError("it is not a text file")
        else:
            try:
                text = content.decode()
            except UnicodeDecodeError:
                text = decode(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path}: {reason}") from None
    return text.replace("\ufeff", "")  # also between files that were joined


def _formats() -> dict[str, RecordFormat]:
    """Returns the formats of the registered games by suffix."""
    formats = (find_class(name).record_format for name in available())
    return {each.suffix: each for each in formats}


def _of_saved(saved: saved_game.SavedGame) -> GameText:
    results = {text: int(pair[0]) for pair, text in saved_game.RESULTS.items()}
    fault = saved.result_text if saved.is_forfeit else ""
    result = results.get(saved.result)
    return GameText("it", saved.game, saved.players, saved.moves, result, fault)


def _lines(text: str, game: Game) -> Iterator[GameText]:
    """Yields a game for each line of moves; numbers such as `1.` are left out."""
    state = first_state(game)

    def words_of(moves: Iterable[int]) -> set[str]:
        return {move_to_word(game, state, move).lower() for move in moves}

    # Of the outcomes of chance, those that are possible in the first position.
    outcomes = words_of(m for m in legal_moves(game, state) if m >= game.num_actions)
    texts = outcomes | words_of(range(game.num_actions))
    longest = max(map(len, texts))
    # An outcome of chance may come before and after each move.
    most = 2 * game.max_moves + 1 if game.num_outcomes else game.max_moves
    place, moves = "", []
    for number, line in enumerate(text.splitlines(), 1):
        words = _WORD.findall(line)
        begins_with = _NUMBER.fullmatch(words[0]) if words else None
        count = int(begins_with[1]) if begins_with else 1
        if words and count == 1:
            if moves:
                yield GameText(place, "", ("?", "?"), moves, None)
            place, moves = f"line {number}", []
        elif words:
            played = sum(move.lower() not in outcomes for move in moves)
            if played not in (count - 1, 2 * count - 2, 2 * count - 1):
                raise ValueError(
                    f"line {number}: it begins with {words[0]!r} after {played} moves; "
                    "give each game a line of its own, without a number of the game"
                )
        for word in words:
            if not _NUMBER.fullmatch(word):
                moves += _moves_of(word, texts, longest, most)
    if moves:
        yield GameText(place, "", ("?", "?"), moves, None)


def _moves_of(word: str, texts: Set[str], longest: int, most: int) -> list[str]:
    """Returns the moves of a word, which may have several without spaces between them.

    Args:
        word: the word; it is one move if it can be divided in several ways or in none.
        texts: all moves in lower case.
        longest: length of the longest of them.
        most: number of moves of a game.
    """
    lower = word.lower()
    if lower in texts or len(word) > most * longest:
        return [word]
    starts = {0: 0}  # of the last move, by the end of the moves so far; -1: several
    for end in range(1, len(word) + 1):
        before = [
            start
            for start in range(max(0, end - longest), end)
            if start in starts and lower[start:end] in texts
        ]
        if before:
            is_single = len(before) == 1 and starts[before[0]] >= 0
            starts[end] = before[0] if is_single else -1
    moves, end = [], len(word)
    if starts.get(end, -1) < 0:
        return [word]
    while end:
        moves.append(word[starts[end] : end])
        end = starts[end]
    return moves[::-1]


def game_of(found: GameText | ValueError, wanted: Game | None) -> Game:
    """Returns the game that a text of `game_texts` is of.

    Raises:
        ValueError: it could not be read, or is of an unknown or not of the wanted game.
    """
    if isinstance(found, ValueError):
        raise found
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


def replayed(game: Game, found: GameText | ValueError) -> GameRecord:
    """Returns a game after playing its moves, to the end by the rules.

    Raises:
        ValueError: it could not be read, or a move is illegal.
    """
    if isinstance(found, ValueError):
        raise found
    state, moves = first_state(game), []
    for number, text in enumerate(found.moves, 1):
        if state.terminated and found.result is not None:
            break  # such as a third pass in Go, or a draw that nobody claimed in chess
        short = text if len(text) <= _LONGEST_MOVE else f"{text[:_LONGEST_MOVE]}..."
        if not found.game and short.lower() != _PASS:  # lines may leave out such passes
            only = legal_actions(game, state)
            if len(only) == 1 and game.action_to_text(state, only[0]) == _PASS:
                moves += only
                state = next_state(game, state, only[0])
        try:
            moves.append(word_to_move(game, state, short))
        except ValueError as error:
            raise ValueError(f"{found.place}: move {number}: {error}") from None
        state = next_state(game, state, moves[-1])
    result = found.result
    if result is None and state.terminated:
        result = int(rewards(game, state)[0])
    return GameRecord(
        found.names,
        moves,
        result,
        found.fault,
        found.opening_moves,
        found.values[: len(moves)],
        found.note,
    )
