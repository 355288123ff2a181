"""Saved games: a text file that people can read and write.

    azjax game 1
    game: connect_four
    first: human
    second: alphazero:pretrained
    result: first wins

    1. 4 4
    2. 3 2

The first line names the format. Lines with a name and a value follow; unknown names
are ignored. After an empty line come the moves in the notation of the game; their
numbers are optional. In games with chance the outcomes are among the moves, with `_`
for each space, as in `1. roll_3 b2`.
"""

import codecs
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from azjax.games.core import Game
from azjax.games.host import first_state, next_state, rewards, word_to_move
from azjax.games.registry import make
from azjax.text import printable, quoted

FORMAT = 1
MAX_BYTES = 1_000_000
UNFINISHED = "unfinished"
RESULTS = {(1.0, -1.0): "first wins", (-1.0, 1.0): "second wins", (0.0, 0.0): "drawn"}
_FORFEIT = ", the other side could not go on"  # part of the file format
HEAD = "azjax game"
_NEEDED = ("game", "first", "second", "result")


class SavedGame(NamedTuple):
    """The content of a saved game.

    game: text for `games.make`.
    players: names of players 0 and 1.
    result: one of `RESULTS`, or `UNFINISHED`.
    moves: moves in the game's notation.
    is_forfeit: whether the game ended by a forfeit.
    result_text: the reason of the result, for people.
    """

    game: str
    players: tuple[str, str]
    result: str
    moves: Sequence[str]
    is_forfeit: bool = False
    result_text: str = ""


def save(path: Path, saved: SavedGame, overwrite: bool = False) -> None:
    """Writes a game to a file.

    Raises:
        OSError: the file cannot be written; FileExistsError if it exists and
            `overwrite` is False.
    """
    head = {
        "game": saved.game,
        "first": saved.players[0],
        "second": saved.players[1],
        "result": saved.result + (_FORFEIT if saved.is_forfeit else ""),
    }
    if saved.result_text:
        head["ending"] = saved.result_text
    lines = [f"{HEAD} {FORMAT}"]
    lines += [f"{name}: {' '.join(value.split())}" for name, value in head.items()]
    lines.append("")
    words = ["_".join(move.split()) for move in saved.moves]
    for number in range(0, len(words), 2):
        lines.append(" ".join([f"{number // 2 + 1}.", *words[number : number + 2]]))
    text = "\n".join(lines) + "\n"
    if not overwrite:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        return
    whole = path.with_name(f"{path.name}.part")
    whole.write_text(text, encoding="utf-8")
    whole.replace(path)


def load(path: Path, game: Game | None) -> tuple[SavedGame, list[int]]:
    """Reads a game from a file.

    Args:
        path: path of the file.
        game: the expected game; faster if it is `compiled`. None: the one of the file.

    Returns:
        The content and the moves: actions, and A + k for outcome k of chance.

    Raises:
        ValueError: the file is malformed, has another game or an illegal move; the
            message names the line.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1).removeprefix(codecs.BOM_UTF8)
    if not content.startswith(HEAD.encode()) or len(content) > MAX_BYTES:
        raise ValueError(f"{path} is not a saved game of azjax")
    try:
        return parse(content.decode(errors="replace"), game)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse(text: str, game: Game | None) -> tuple[SavedGame, list[int]]:
    """Reads a game from the text of a file, which starts with `HEAD`; see `load`."""
    lines = [
        (number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)
    ]
    first = lines[0][1]
    if first != f"{HEAD} {FORMAT}":
        raise ValueError(
            f"line 1: this version of azjax reads `{HEAD} {FORMAT}`: {first[:40]!r}"
        )
    head: dict[str, str] = {}
    for number, line in itertools.takewhile(lambda numbered: numbered[1], lines[1:]):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not name or name in head:
            raise ValueError(
                f"line {number} must be a new `name: value`: {line[:60]!r}"
            )
        head[name] = value
    missing = [name for name in _NEEDED if name not in head]
    if missing:
        raise ValueError(f"missing line before the moves: `{missing[0]}: ...`")
    stated = head["result"].removesuffix(_FORFEIT)
    results = (*RESULTS.values(), UNFINISHED)
    if stated not in results:
        raise ValueError(
            f"the result must be one of {results}: {quoted(head['result'])}"
        )
    stated_game = make(head["game"])
    game = stated_game if game is None else game
    if stated_game != game:
        raise ValueError(f"the game is {head['game']}, not {game}")
    moves: list[str] = []
    state, numbers = first_state(game), []
    for line, words in lines[len(head) + 1 :]:
        for word in words.split():
            if re.fullmatch(r"\d+\.", word):
                continue
            moves.append(word)
            try:
                numbers.append(word_to_move(game, state, word))
            except ValueError as error:
                raise ValueError(f"line {line}: move {len(moves)}: {error}") from error
            state = next_state(game, state, numbers[-1])
    result = RESULTS[rewards(game, state)] if state.terminated else UNFINISHED
    if stated != head["result"] and result == UNFINISHED:
        result = stated  # the moves do not show a forfeit
    if stated != result:
        raise ValueError(f"the result is {quoted(stated)}, but by its moves {result}")
    saved = SavedGame(
        game=head["game"],
        players=(printable(head["first"]), printable(head["second"])),
        result=stated,
        moves=moves,
        is_forfeit=stated != head["result"],
        result_text=printable(head.get("ending", "")),
    )
    return saved, numbers
