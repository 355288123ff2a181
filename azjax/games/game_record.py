"""Records of games, and what a file format of games is."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from azjax.text import quoted

RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}  # by the reward of player 0
RANDOM_MOVES = "the moves so far were made at random"  # comment after an opening
MAX_MOVES = 100_000  # of a game of a file
RESIGNED = "resigned"  # the fault of a resigned game, which is no forfeit


class GameRecord(NamedTuple):
    """The moves and the result of one game.

    names: names of players 0 and 1.
    moves: from the initial position: actions, and A + k for outcome k of chance.
    result: 1 if player 0 won, 0 for a draw, -1 if player 1 won; None if the game was
        not finished.
    fault: why the loser forfeited; `RESIGNED` if the loser resigned; empty if the game
        ended by the rules.
    opening_moves: number of random moves at the beginning, outcomes included.
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


def escaped(text: str, mark: str) -> str:
    """Returns a text in one line, with a backslash before each `mark` and backslash, as
    PGN and SGF write it."""
    return " ".join(text.split()).replace("\\", "\\\\").replace(mark, f"\\{mark}")


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
