"""Records of games, and their formats in files."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from azjax.checks import check_int, check_number, quoted

if TYPE_CHECKING:
    from azjax.games.core import Game

RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}  # by the reward of player 0
RANDOM_MOVES = "the moves so far were made at random"  # comment after an opening
MAX_MOVES = 100_000  # of a game of a file
RESIGNED = "resigned"  # the fault of a resigned game, which is no forfeit
_MALFORMED = (
    *(KeyError, TypeError, AttributeError, ValueError),
    *(OverflowError, RecursionError),
)


class GameRecord(NamedTuple):
    """The moves and the result of one game.

    names: names of players 0 and 1.
    moves: the actions from the initial position.
    result: 1 if player 0 won, 0 for a draw, -1 if player 1 won; None if the game was
        not finished.
    fault: why the loser forfeited; `RESIGNED` if the loser resigned; empty if the game
        ended by the rules.
    opening_moves: number of random moves at the beginning.
    values: the expected result for player 0 after each move, in [-1, 1], as the game
        was annotated, or as the player who was to move then saw it; None where it is
        not known, and no values at all for a game without any.
    note: what was doubtful in the file; empty if nothing was.
    """

    names: tuple[str, str]
    moves: list[int]
    result: int | None
    fault: str
    opening_moves: int = 0
    values: Sequence[float | None] = ()
    note: str = ""

    @property
    def is_forfeit(self) -> bool:
        """Whether the loser made an illegal move or stopped answering."""
        return is_forfeit(self.fault)


class GameText(NamedTuple):
    """A game as a file has it, before the rules are applied.

    place: of the game in the file, for messages.
    game: text for `games.make`.
    names: names of players 0 and 1.
    moves: the moves in the notation of the game.
    result, fault, opening_moves, values, note: as in `GameRecord`.
    """

    place: str
    game: str
    names: tuple[str, str]
    moves: Sequence[str]
    result: int | None
    fault: str = ""
    opening_moves: int = 0
    values: Sequence[float | None] = ()
    note: str = ""


class RecordFormat(NamedTuple):
    """A file format of games.

    suffix: of the files, without the dot.
    head: regular expression of how their text begins.
    write: returns games as text; called with the `Game` that has the format.
    read: yields the games of a text, and in place of one that cannot be read a
        ValueError, whose message has the place.
    decode: returns the text of a file that is not in UTF-8; raises a ValueError if that
        cannot be done.
    """

    suffix: str
    head: str
    write: Callable[[Any, Sequence[GameRecord]], str]
    read: Callable[[str], Iterator[GameText | ValueError]]
    decode: Callable[[bytes], str] = lambda content: content.decode("latin-1")


def ends_opening(comment: str) -> bool:
    """Returns whether a comment, whose lines may have been broken, says that the moves
    so far were made at random."""
    return RANDOM_MOVES in " ".join(comment.split())


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
    `opening_moves`, if the loser forfeited or resigned the reason, `forfeit`, and if
    any are known the `values` after the moves, null for one that is not.
    """
    from azjax.games.host import first_state, next_state  # noqa: PLC0415, a cycle

    lines = []
    for record in records:
        state, moves = first_state(game), []
        for action in record.moves:
            moves.append(game.action_to_text(state, action))
            state = next_state(game, state, action)
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
        if line.strip():
            yield _from_json(line, f"line {number}")


def _from_json(line: str, place: str) -> GameText | ValueError:
    try:
        found = json.loads(line)
        game, (first, second) = found["game"], found["players"]
        result, moves = str(found["result"]), found["moves"].split()
        fault = str(found.get("forfeit", ""))
        opening_moves = found.get("opening_moves", 0)
        check_int("opening_moves", opening_moves, 0)
        values = _values(found.get("values") or [], len(moves))
    except _MALFORMED as error:
        return ValueError(
            f"{place}: not a game: a line has game, players, result and moves, and may "
            f"have forfeit, opening_moves and values ({type(error).__name__}: {error})"
        )
    try:
        number = result_of(result)
    except ValueError as error:
        return ValueError(f"{place}: {error}")
    names = (str(first), str(second))
    return GameText(
        place, str(game), names, moves, number, fault, opening_moves, values
    )


def _values(found: Any, num_moves: int) -> tuple[float | None, ...]:
    """Checks the values of a game."""
    if not isinstance(found, list) or len(found) not in (0, num_moves):
        raise TypeError("values must be a list, with a value for each move")
    for value in found:
        if value is not None:
            check_number("values", value, at_least=-1, at_most=1)
    return tuple(found)


def result_of(text: str) -> int | None:
    """Returns the result that `1-0`, `1/2-1/2`, `0-1` or, for an unfinished game, `*`
    stands for.

    Raises:
        ValueError: the text is none of them.
    """
    results: dict[str, int | None] = {word: key for key, word in RESULTS.items()}
    results["*"] = None
    if text not in results:
        raise ValueError(f"result must be {' or '.join(results)}: {quoted(text)}")
    return results[text]


JSON_LINES = RecordFormat("jsonl", r"\{", to_json_lines, from_json_lines)
