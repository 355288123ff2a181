"""A person at the terminal, for matches against other players.

`azjax play` shows more, and lets moves be taken back; this is a person to whom a match
or a tournament is conducted elsewhere.
"""

from collections.abc import Callable, Sequence

from azjax.games import Game, State
from azjax.players.session import ForfeitError, MoveDecision


class HumanPlayer:
    """Asks for moves, line by line.

    Args:
        read: asks for a line and returns it; raises EOFError at the end.
        write: shows a line.
    """

    def __init__(
        self,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = print,
    ):
        self._read, self._write = read, write

    def start_session(self, game: Game, seed: int) -> "HumanSession":
        """Returns the person's seat in a game that begins."""
        del seed
        return HumanSession(game, self._read, self._write)


class HumanSession:
    """A person in one game."""

    def __init__(
        self, game: Game, read: Callable[[str], str], write: Callable[[str], object]
    ):
        self._game, self._read, self._write = game, read, write

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Shows the position and asks until the answer is a legal move.

        Raises:
            ForfeitError: there is nobody to answer, or the answer is `resign`.
        """
        last_action = moves[-1] if moves else None
        self._write("\n" + self._game.to_text(state, last_action))
        while True:
            try:
                text = self._read("your move, or resign: ")
            except EOFError as error:
                raise ForfeitError("nobody answers") from error
            if text.strip() == "resign":
                raise ForfeitError("resigned")
            try:
                return MoveDecision(self._game.text_to_action(state, text))
            except ValueError as error:
                self._write(str(error))

    def close(self) -> None:
        """Does nothing."""
