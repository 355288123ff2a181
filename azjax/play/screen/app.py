"""The full-screen interface: a board, a side panel and an input line."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from azjax.play.screen.board import Board
from azjax.play.screen.entry import Entry
from azjax.play.screen.side_panel import side_panel
from azjax.play.session import (
    AdviceFailed,
    Advised,
    Background,
    Event,
    Executor,
    Forfeited,
    GameOver,
    Jumped,
    Moved,
    Session,
    help_lines,
    parse,
)
from azjax.play.text_output import expected_value, side_names, value_text

INTERRUPTED = 130  # an exit status: 128 and the number of the signal
STATUSES = {
    getattr(signal, name): 128 + getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)  # Windows has no SIGHUP
}
MOVE_INTERVAL = 0.4  # least time between two moves when the opponent plays both sides
PANEL_COLUMNS = 42  # of the side panel
BOARD_COLUMNS = 42  # of a board of reasonable size
PANEL_BELOW_ROWS = 34  # of the terminal, so that the panel fits below the board
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

KEYS = """\
arrows  move the cursor      Enter  play there, or select a piece
F1      help                 F2     hint           F3  analysis
F4      back                 F5     forward        F6  change sides
F7      auto                 F8     new game       F9  save
Esc     clear                Tab    complete       ^Q, ^C  quit

Or type a move, or one of these:

"""


class PlayApp(App[None]):
    """Shows the games of a session on the full screen.

    Args:
        make_session: makes the session with the executor of its opponent.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "play.tcss"
    BINDINGS: ClassVar = [
        Binding("f1", "help", "Help"),
        Binding("f2", "do('hint')", "Hint"),
        Binding("f3", "do('analysis')", "Info"),
        Binding("f4", "do('back')", "Undo"),
        Binding("f5", "do('forward')", "Redo"),
        Binding("f6", "do('sides')", "Sides"),
        Binding("f7", "do('auto')", "Auto"),
        Binding("f8", "new", "New"),
        Binding("f9", "do('save')", "Save"),
        Binding("ctrl+q", "do('quit')", "Quit"),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False),
    ]

    def __init__(self, make_session: Callable[[Executor], Session]):
        super().__init__()
        self.background = Background()
        self.session = make_session(self.background)
        self.title_line = Static(id="title", markup=False)
        self.board = Board(self.session, self.play, self.reject_click)
        self.panel = Static(id="panel")
        self.message = Static(id="message", markup=False)
        self.entry = Entry(self.session, self.board, self.submit)
        self._last_move = 0.0
        self._frames = 0
        self._is_confirming = False  # whether F8 was pressed once
        self.session.observe(self.observe)

    def compose(self) -> ComposeResult:
        """Yields the widgets of the screen."""
        yield self.title_line
        with Container(id="main"):
            yield self.board
            with VerticalScroll(id="side", can_focus=False):
                yield self.panel
        yield self.message
        yield self.entry
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Starts the timer and the signal handlers."""
        loop = asyncio.get_running_loop()
        # Not on Windows; there the default handlers end the program.
        with contextlib.suppress(NotImplementedError):
            for number, status in STATUSES.items():
                loop.add_signal_handler(number, lambda end=status: self.leave(end))
        self.set_interval(1 / 20, self.tick)
        self.entry.focus()
        self.board.update()  # a saved game may be loaded
        self.show()
        if not self.session.is_started:
            self.push_screen(Waiting(f"compiling {self.session.name} ..."))

    def tick(self) -> None:
        """Runs callbacks and updates the clocks."""
        now = time.monotonic()
        if not self.session.is_auto or now - self._last_move >= MOVE_INTERVAL:
            self.background.run_next(waits=False)
        self._frames += 1
        if self._frames % 4 == 0:
            self.show_turn()
            # Only the clocks change; a new layout would be slow.
            self.panel.update(side_panel(self.session), layout=False)

    def observe(self, event: Event) -> None:
        """Shows an event of the game."""
        if not self.is_running:
            return
        session, game = self.session, self.session.game
        match event:
            case Moved(player, move):
                self._last_move = time.monotonic()
                if move.decision is not None:
                    value = expected_value(move.decision)
                    expects = ""
                    if value is not None:
                        expects = f", expects {value_text(game, player, value)}"
                    name = session.name_of(player)
                    self.say(f"{name} plays {move.text}{expects}")
                else:
                    self.say("")
            case Advised(decision):
                text = game.action_to_text(session.state, decision.action)
                if not session.is_analyzing:
                    self.say(f"{session.name} would play {text}")
            case AdviceFailed(reason):
                self.say(f"no advice: {reason}", is_wrong=True)
            case Forfeited():
                self.say(session.forfeit_text(event), is_wrong=True)
        if isinstance(event, Moved | Jumped | GameOver):
            self.board.update()
        if session.is_started and isinstance(self.screen, Waiting):
            self.screen.dismiss()
        self.show()

    def say(self, text: str, is_wrong: bool = False) -> None:
        """Shows a message."""
        self.message.set_class(is_wrong, "-wrong")
        self.message.update(text)

    def show(self) -> None:
        """Updates everything except the board."""
        self.arrange(self.size)
        self.panel.update(side_panel(self.session))
        self.entry.complete_moves(self.board.unplaced)
        self.show_turn()

    def on_resize(self, event: events.Resize) -> None:
        """Adapts the layout to a new size."""
        self.arrange(event.size)

    def arrange(self, size: Size) -> None:
        """Shows the side panel to the right of the board, below it, or not at all."""
        is_needed = self.session.is_analyzing
        columns = self.board.smallest_size[1] if is_needed else BOARD_COLUMNS
        is_right = size.width >= PANEL_COLUMNS + columns
        is_tall = size.height >= PANEL_BELOW_ROWS
        is_below = not is_right and (is_needed or is_tall)
        base = self.screen_stack[0]
        base.set_class(is_right, "-right")
        base.set_class(is_below, "-below")

    @property
    def spinner(self) -> str:
        """The current character of the spinner."""
        return SPINNER[self._frames // 2 % len(SPINNER)]

    def show_turn(self) -> None:
        """Shows whose turn it is, or what is running."""
        session = self.session
        if not session.is_started:
            turn = f"{self.spinner} compiling {session.name}"
        elif session.result is not None:
            turn = session.outcome()
        elif session.thinking is not None:
            turn = f"{self.spinner} {session.name} is thinking"
        elif session.opponent_session is None:
            turn = f"the {side_names(session.game)[session.player]} move"
        else:
            turn = f"your move, with the {side_names(session.game)[session.player]}"
        title = Text(f" {session.game} ", "bold reverse")
        title.append(f"  {turn}", "bold not reverse")
        self.title_line.update(title, layout=False)  # it always has one row

    def do(self, line: str) -> None:
        """Executes a line and shows its message or error."""
        self.say("")
        try:
            message = self.session.do(line)
        except ValueError as error:
            self.say(str(error), is_wrong=True)
        else:
            if message:
                self.say(message)
        if self.session.is_left:
            self.leave(0)
        self.show()

    def leave(self, status: int) -> None:
        """Ends the program with an exit status; later calls do not change it."""
        if self.return_code is None:
            self.exit(return_code=status)

    def play(self, action: int) -> None:
        """Plays an action chosen on the board."""
        self.do(self.session.game.action_to_text(self.session.state, action))

    def reject_click(self) -> None:
        """Explains why a click on the board has no effect."""
        if self.session.result is not None:
            self.say("the game is over: F8 starts a new one", is_wrong=True)
        elif not self.session.is_persons_turn:
            self.say("it is not your turn", is_wrong=True)
        else:
            self.say("no move starts there", is_wrong=True)

    def submit(self, line: str) -> None:
        """Executes a typed line; an empty line plays at the cursor."""
        command = parse(line)
        name = command[0] if command else ""
        if not line.strip():
            self.board.point()
        elif name == "help":
            self.action_help()
        elif name == "new":
            self.action_new()
        else:
            self.do(line)

    def action_do(self, line: str) -> None:
        """Executes the command of a key."""
        self._is_confirming = False
        self.do(line)

    def action_new(self) -> None:
        """Starts a new game; asks for confirmation if a game is running."""
        is_running = self.session.result is None and len(self.session.moves) > 0
        self._is_confirming = is_running and not self._is_confirming
        if self._is_confirming:
            self.say("press F8 again to leave this game and start a new one")
        else:
            self.do("new")

    def action_help(self) -> None:
        """Shows the help screen unless it is open."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_interrupt(self) -> None:
        """Ends the program as an interrupt does."""
        self.leave(INTERRUPTED)


class Help(ModalScreen[None]):
    """The help screen; any key closes it."""

    def compose(self) -> ComposeResult:
        """Returns the text."""
        yield Static(KEYS + "\n".join(help_lines()), id="help", markup=False)

    def on_key(self, event: events.Key) -> None:
        """Closes the screen; the key has no other effect."""
        event.stop()
        self._leave()

    def on_click(self) -> None:
        """Closes the screen."""
        self._leave()

    def _leave(self) -> None:
        # Further keys may arrive before the screen is closed.
        if self.is_current:
            self.dismiss()


class Waiting(ModalScreen[None]):
    """Shows a message until the game starts, and discards keys."""

    def __init__(self, text: str):
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Returns the text."""
        text = f"{self._text}\nuntil then only ^Q and ^C work: they quit"
        yield Static(text, id="waiting", markup=False)

    async def on_key(self, event: events.Key) -> None:
        """Discards a key, also if the game has just started."""
        event.stop()
        if event.key == "ctrl+q":
            await self.run_action("app.do('quit')")
