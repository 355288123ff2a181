"""The full screen: a board, what stands beside it, a line to type in."""

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

from azjax.play.background import Pump
from azjax.play.events import (
    AdviceFailed,
    Advised,
    Event,
    Forfeited,
    GameOver,
    Jumped,
    Moved,
)
from azjax.play.executor import Executor
from azjax.play.screen.board import Board
from azjax.play.screen.entry import Entry
from azjax.play.screen.side import beside
from azjax.play.session import Session, help_lines, parse
from azjax.play.text_output import opinion, side_names, value_text

INTERRUPTED = 130  # an exit status: 128 and the number of the signal
STATUSES = {
    getattr(signal, name): 128 + getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)  # Windows has no SIGHUP
}
PACE = 0.4  # seconds at least between the moves of a game that plays itself
SIDE, WIDE = 42, 42  # columns of what stands beside the board, and of a fair board
TALL = 34  # rows in which there is room below the board
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

KEYS = """\
arrows  move the cursor      Enter  play there, or choose a piece
F1      help                 F2     hint           F3  analysis
F4      back                 F5     forward        F6  change sides
F7      auto                 F8     new game       F9  save
Esc     clear                Tab    complete       ^Q, ^C  quit

Or type a move, or one of these:

"""


class PlayApp(App[None]):
    """Shows a session's games on the full screen.

    Args:
        sit_down: makes the session, whose seats think where it is told.
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

    def __init__(self, sit_down: Callable[[Executor], Session]):
        super().__init__()
        self.pump = Pump()
        self.session = sit_down(self.pump.background)
        self.title_line = Static(id="title", markup=False)
        self.board = Board(self.session.controller, self.play, self.explain)
        self.beside = Static(id="beside")
        self.message = Static(id="message", markup=False)
        self.entry = Entry(self.session, self.board, self.obey)
        self._last_move = 0.0
        self._frames = 0
        self._is_asking = False  # whether the game that is on may be left
        self.session.controller.observe(self.tell)

    def compose(self) -> ComposeResult:
        """Returns the parts of the screen."""
        yield self.title_line
        with Container(id="main"):
            yield self.board
            with VerticalScroll(id="side", can_focus=False):
                yield self.beside
        yield self.message
        yield self.entry
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Begins to show what happens."""
        loop = asyncio.get_running_loop()
        # Windows has no such handlers: the program's own end it there.
        with contextlib.suppress(NotImplementedError):
            for number, status in STATUSES.items():
                loop.add_signal_handler(number, lambda end=status: self.leave(end))
        self.set_interval(1 / 20, self.tick)
        self.entry.focus()
        self.board.follow()  # a saved game may have been loaded
        self.show()
        if not self.session.controller.is_started:
            self.push_screen(Waiting(f"compiling {self.session.name} ..."))

    def tick(self) -> None:
        """Takes what a seat has answered, and lets the clocks go on."""
        now = time.monotonic()
        if not self.session.is_auto or now - self._last_move >= PACE:
            self.pump.call()
        self._frames += 1
        if self._frames % 4 == 0:
            self.show_turn()
            # Only the clocks change: the layout, which takes long, stays.
            self.beside.update(beside(self.session), layout=False)

    def tell(self, event: Event) -> None:
        """Observes the game."""
        if not self.is_running:
            return
        game, controller = self.session.game, self.session.controller
        match event:
            case Moved(player, move):
                self._last_move = time.monotonic()
                if move.decision is not None:
                    value = opinion(move.decision)
                    expects = ""
                    if value is not None:
                        expects = f", expects {value_text(game, player, value)}"
                    name = self.session.addressed(player)
                    self.say(f"{name} plays {move.text}{expects}")
                else:
                    self.say("")
            case Advised(decision):
                text = game.action_to_text(controller.state, decision.action)
                if not self.session.is_analysing:
                    self.say(f"{self.session.name} would play {text}")
            case AdviceFailed(reason):
                self.say(f"no advice: {reason}", is_wrong=True)
            case Forfeited():
                self.say(self.session.farewell(event), is_wrong=True)
        if isinstance(event, Moved | Jumped | GameOver):
            self.board.follow()
        if controller.is_started and isinstance(self.screen, Waiting):
            self.screen.dismiss()
        self.show()

    def say(self, text: str, is_wrong: bool = False) -> None:
        """Tells the person something."""
        self.message.set_class(is_wrong, "-wrong")
        self.message.update(text)

    def show(self) -> None:
        """Shows everything that may have changed but the board."""
        self.arrange(self.size)
        self.beside.update(beside(self.session))
        self.entry.offer(self.board.unplaced)
        self.show_turn()

    def on_resize(self, event: events.Resize) -> None:
        """Puts things where there is room for them."""
        self.arrange(event.size)

    def arrange(self, size: Size) -> None:
        """Puts what stands beside the board there, or below it, or leaves it out."""
        is_asked = self.session.is_analysing
        columns = self.board.needs[1] if is_asked else WIDE
        is_beside = size.width >= SIDE + columns
        is_below = not is_beside and (is_asked or size.height >= TALL)
        base = self.screen_stack[0]
        base.set_class(is_beside, "-beside")
        base.set_class(is_below, "-below")

    @property
    def spinner(self) -> str:
        """A sign that turns as time goes by."""
        return SPINNER[self._frames // 2 % len(SPINNER)]

    def show_turn(self) -> None:
        """Shows whose turn it is, or what the game waits for."""
        session, controller = self.session, self.session.controller
        if not controller.is_started:
            turn = f"{self.spinner} compiling {session.name}"
        elif controller.result is not None:
            turn = session.outcome()
        elif controller.thinking is not None:
            turn = f"{self.spinner} {session.name} thinks"
        elif session.seat is None:
            turn = f"the {side_names(session.game)[controller.player]} move"
        else:
            turn = f"your move, with the {side_names(session.game)[controller.player]}"
        title = Text(f" {session.game} ", "bold reverse")
        title.append(f"  {turn}", "bold not reverse")
        self.title_line.update(title, layout=False)  # it always has one row

    def do(self, line: str) -> None:
        """Does what a line says, or explains why not."""
        self.say("")
        try:
            said = self.session.do(line)
        except ValueError as error:
            self.say(str(error), is_wrong=True)
        else:
            if said:
                self.say(said)
        if self.session.is_left:
            self.leave(0)
        self.show()

    def leave(self, status: int) -> None:
        """Ends the program with an exit status, the first one if there are several."""
        if self.return_code is None:
            self.exit(return_code=status)

    def play(self, action: int) -> None:
        """Plays where the person pointed."""
        game, state = self.session.game, self.session.controller.state
        self.do(game.action_to_text(state, action))

    def explain(self) -> None:
        """Says why nothing happens where the person pointed."""
        controller = self.session.controller
        if controller.result is not None:
            self.say("the game is over: F8 begins a new one", is_wrong=True)
        elif not controller.is_persons_turn:
            self.say("it is not your turn", is_wrong=True)
        else:
            self.say("no move begins there", is_wrong=True)

    def obey(self, line: str) -> None:
        """Does what was typed; an empty line plays at the cursor."""
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
        """Does what a key stands for."""
        self._is_asking = False
        self.do(line)

    def action_new(self) -> None:
        """Begins a new game, after asking whether the one that is on may be left."""
        controller = self.session.controller
        is_on = controller.result is None and len(controller.moves) > 0
        self._is_asking = is_on and not self._is_asking
        if self._is_asking:
            self.say("F8 once more leaves this game and begins a new one")
        else:
            self.do("new")

    def action_help(self) -> None:
        """Shows the keys and commands, once."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_interrupt(self) -> None:
        """Leaves as Ctrl-C does."""
        self.leave(INTERRUPTED)


class Help(ModalScreen[None]):
    """The keys and the commands; any key leaves it."""

    def compose(self) -> ComposeResult:
        """Returns the text."""
        yield Static(KEYS + "\n".join(help_lines()), id="help", markup=False)

    def on_key(self, event: events.Key) -> None:
        """Goes back to the game; the key does nothing else there."""
        event.stop()
        self._leave()

    def on_click(self) -> None:
        """Goes back to the game."""
        self._leave()

    def _leave(self) -> None:
        # Keys that were pressed quickly arrive here after the first one.
        if self.is_current:
            self.dismiss()


class Waiting(ModalScreen[None]):
    """Says what the game waits for before it starts, and drops keys meanwhile.

    Args:
        text: what is said.
    """

    def __init__(self, text: str):
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Returns the text."""
        text = f"{self._text}\nkeys do nothing until then, but ^Q and ^C quit"
        yield Static(text, id="waiting", markup=False)

    async def on_key(self, event: events.Key) -> None:
        """Drops a key, also if the game has started since it was pressed."""
        event.stop()
        if event.key == "ctrl+q":
            await self.run_action("app.do('quit')")
