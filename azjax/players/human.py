"""A person at the terminal as an external player, for matches and tournaments.

`azjax play` has its own interface, with undo.
"""

from collections.abc import Callable, Sequence

from azjax.games import Game, State
from azjax.players.session import ForfeitError, MoveDecision


class HumanPlayer:
    """Asks for moves, line by line.

    Args:
        read: shows a prompt and returns a line; raises EOFError at the end of the
            input.
        write: prints a line.
    """

    def __init__(
        self,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = print,
    ):
        self._read, self._write = read, write

    def start_session(self, game: Game, seed: int) -> "HumanSession":
        """Starts a session for a new game."""
        del seed
        return HumanSession(game, self._read, self._write)


class HumanSession:
    """A person in one game."""

    def __init__(
        self, game: Game, read: Callable[[str], str], write: Callable[[str], object]
    ):
        self._game, self._read, self._write = game, read, write

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Prints the position and asks until the answer is a legal move."""
        last_action = moves[-1] if moves else None
        self._write("\n" + self._game.to_text(state, last_action))
        while True:
            try:
                text = self._read("your move, or resign: ")
            except EOFError as error:
                raise ForfeitError("end of input") from error
            if text.strip() == "resign":
                raise ForfeitError("resigned")
            try:
                return MoveDecision(self._game.text_to_action(state, text))
            except ValueError as error:
                self._write(str(error))

    def close(self) -> None:
        """Does nothing."""
