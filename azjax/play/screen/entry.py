"""The input line for moves and commands."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding
from textual.suggester import Suggester
from textual.widgets import Input

from azjax.play.screen.board import Board
from azjax.play.session import COMMANDS, Session


class Entry(Input):
    """The input line, with completion of moves and commands.

    It always has the focus; while it is empty, the arrow keys move the board's cursor.

    Args:
        session: provides the moves.
        board: provides the cursor.
        submit: called with each line.
    """

    BINDINGS: ClassVar = [
        Binding("up", "move_cursor(-1, 0)", show=False),
        Binding("down", "move_cursor(1, 0)", show=False),
        Binding("tab", "complete", show=False),
        Binding("escape", "clear", show=False),
    ]

    def __init__(self, session: Session, board: Board, submit: Callable[[str], None]):
        self.completions = Completions()
        super().__init__(
            id="entry",
            compact=True,
            suggester=self.completions,
            select_on_focus=False,
        )
        self._session, self._board, self._submit = session, board, submit

    def complete_moves(self, unplaced: list[int]) -> None:
        """Sets the completions to the legal moves and the commands.

        Args:
            unplaced: moves without a cell, which the placeholder names.
        """
        session, game, state = self._session, self._session.game, self._session.state
        legal = session.legal_actions() if session.is_persons_turn else []
        moves = [game.action_to_text(state, action) for action in legal]
        commands = [command.names[0] for command in COMMANDS]
        self.completions.set_texts([*moves, *commands])
        placeholder = "type a move or a command, or use arrows and Enter"
        if unplaced:
            names = [game.action_to_text(state, action) for action in unplaced[:8]]
            more = " ..." if len(unplaced) > 8 else ""
            placeholder = f"also legal: {' '.join(names)}{more}"
        self.placeholder = placeholder

    async def on_key(self, event: events.Key) -> None:
        """Runs the binding of a key before the next key is handled.

        Textual runs bindings after the key has passed all parents of the widget, so
        quick keys could arrive out of order.
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
        """Clears the line and submits it."""
        line = self.value
        self.clear()
        self._submit(line)

    def action_move_cursor(self, down: int, right: int) -> None:
        """Moves the cursor of the board."""
        self._board.move_cursor(down, right)

    def action_cursor_left(self, select: bool = False) -> None:
        """Moves the cursor of the line, or of the board if nothing is typed."""
        if self.value:
            super().action_cursor_left(select)
        else:
            self._board.move_cursor(0, -1)

    def action_cursor_right(self, select: bool = False) -> None:
        """Moves the cursor of the line, or of the board if nothing is typed."""
        if self.value:
            super().action_cursor_right(select)
        else:
            self._board.move_cursor(0, 1)

    def action_complete(self) -> None:
        """Accepts the suggested completion."""
        self.value = self.completions.find(self.value) or self.value
        self.action_end()

    def action_clear(self) -> None:
        """Clears the line and deselects the piece."""
        self.clear()
        self._board.deselect()


class Completions(Suggester):
    """Completions of a typed line."""

    def __init__(self):
        super().__init__(use_cache=False, case_sensitive=False)
        self._texts: list[str] = []

    def set_texts(self, texts: list[str]) -> None:
        """Sets the texts that can be completed."""
        self._texts = texts

    async def get_suggestion(self, value: str) -> str | None:
        """Returns the first text that starts with `value`; called by Textual."""
        return self.find(value)

    def find(self, value: str) -> str | None:
        """Returns the first text that starts with `value`, in any case."""
        matching = (t for t in self._texts if t.lower().startswith(value.lower()))
        return next(matching, None)
