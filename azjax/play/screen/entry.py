"""The line in which moves and commands are typed."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding
from textual.suggester import Suggester
from textual.widgets import Input

from azjax.play.screen.board import Board
from azjax.play.session import COMMANDS, Session


class Entry(Input):
    """The line for moves and commands, which completes them.

    It always has the keyboard; as long as it is empty, the arrows move the cursor of
    the board.

    Args:
        session: whose moves and commands complete a line.
        board: whose cursor is moved.
        obey: called with each line.
    """

    BINDINGS: ClassVar = [
        Binding("up", "steer(-1, 0)", show=False),
        Binding("down", "steer(1, 0)", show=False),
        Binding("tab", "complete", show=False),
        Binding("escape", "forget", show=False),
    ]

    def __init__(self, session: Session, board: Board, obey: Callable[[str], None]):
        self.completions = Completions()
        super().__init__(
            id="entry",
            compact=True,
            suggester=self.completions,
            select_on_focus=False,
        )
        self._session, self._board, self._obey = session, board, obey

    def offer(self, unplaced: list[int]) -> None:
        """Completes the moves of the position, and the commands.

        Args:
            unplaced: moves at which nobody can point, to be named.
        """
        game, controller = self._session.game, self._session.controller
        state = controller.state
        legal = controller.legal_actions() if controller.is_persons_turn else []
        moves = [game.action_to_text(state, action) for action in legal]
        self.completions.offer([*moves, *(command.names[0] for command in COMMANDS)])
        placeholder = "type a move or a command; arrows and Enter play on the board"
        if unplaced:
            names = [game.action_to_text(state, action) for action in unplaced[:8]]
            more = " ..." if len(unplaced) > 8 else ""
            placeholder = f"also possible: {' '.join(names)}{more}"
        self.placeholder = placeholder

    async def on_key(self, event: events.Key) -> None:
        """Does what a key is bound to, before the next key.

        Textual itself looks for bindings after the key has passed all parents of the
        line; keys that are pressed quickly would overtake it.
        """
        event.stop()
        active = self.screen.active_bindings.get(event.key)
        if event.key == "space" and not self.value:
            event.prevent_default()
            self._board.point()
        elif active is not None and active.enabled:
            event.prevent_default()
            await self.app.run_action(active.binding.action, active.node)

    async def action_submit(self) -> None:
        """Empties the line and obeys it."""
        line = self.value
        self.clear()
        self._obey(line)

    def action_steer(self, down: int, right: int) -> None:
        """Moves the cursor of the board."""
        self._board.steer(down, right)

    def action_cursor_left(self, select: bool = False) -> None:
        """Moves the cursor of the line, or of the board if nothing is typed."""
        if self.value:
            super().action_cursor_left(select)
        else:
            self._board.steer(0, -1)

    def action_cursor_right(self, select: bool = False) -> None:
        """Moves the cursor of the line, or of the board if nothing is typed."""
        if self.value:
            super().action_cursor_right(select)
        else:
            self._board.steer(0, 1)

    def action_complete(self) -> None:
        """Takes the text that is suggested."""
        self.value = self.completions.find(self.value) or self.value
        self.action_end()

    def action_forget(self) -> None:
        """Forgets what was typed and the piece that was chosen."""
        self.clear()
        self._board.forget()


class Completions(Suggester):
    """Ways to go on with what was typed."""

    def __init__(self):
        super().__init__(use_cache=False, case_sensitive=False)
        self._texts: list[str] = []

    def offer(self, texts: list[str]) -> None:
        """Sets what may be typed."""
        self._texts = texts

    async def get_suggestion(self, value: str) -> str | None:
        """Returns the first text that begins with what was typed."""
        return self.find(value)

    def find(self, value: str) -> str | None:
        """Returns the same."""
        matching = (t for t in self._texts if t.lower().startswith(value.lower()))
        return next(matching, None)
