"""The full-screen interface: a board, a side panel and an input line."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Footer, Input, Static

from azjax.games import Game, State
from azjax.games.rendering import Cell
from azjax.play.screen.drawing import (
    Frame,
    Scene,
    draw,
    frame,
    smallest,
    theme_of,
)
from azjax.play.session import (
    COMMANDS,
    AdviceFailed,
    Advised,
    Event,
    Forfeited,
    GameOver,
    Jumped,
    Moved,
    Session,
    help_lines,
    parse,
)
from azjax.play.text_output import (
    SHOWN_MOVES,
    clock,
    expected_line,
    expected_value,
    rank_moves,
    side_names,
    signed,
    sparkline,
    value_text,
)

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
SHOWN_GAME = 60  # latest moves in the list of played moves
BAR_WIDTH = 8  # characters
MUTED = "#8a949e"
ACCENT = "#12a5a0"

KEYS = """\
arrows  move the cursor      Enter  play there, or select a piece
F1      help                 F2     hint           F3  analysis
F4      back                 F5     forward        F6  change sides
F7      auto                 F8     new game       F9  save
Esc     clear                Tab    complete       ^Q, ^C  quit

Or type a move, or one of these:

"""


def side_panel(session: Session) -> RenderableType:
    """Returns the content of the side panel."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=1)
    table.add_column(ratio=1, overflow="ellipsis", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    sides, names = side_names(session.game), session.player_names
    for player in (0, 1):
        is_turn = session.result is None and session.player == player
        who = Text(names[player], "bold" if is_turn else "")
        who.append(f" {sides[player]}", MUTED)
        table.add_row(
            Text("▶" if is_turn else " ", ACCENT),
            who,
            clock(session.seconds(player)),
        )
    parts: list[RenderableType] = [table]
    if session.is_analyzing:
        parts += [Text(), *_analysis(session)]
    moves, movers = session.moves, session.movers
    # A number for each turn of player 0.
    begins = [
        ply
        for ply, mover in enumerate(movers)
        if mover == 0 and (ply == 0 or movers[ply - 1] == 1)
    ]
    longest = max(0, len(moves) - SHOWN_GAME)
    first = max((ply for ply in begins if ply <= longest), default=0)
    text = Text("… " if first else "", MUTED)
    for ply in range(first, len(moves)):
        if ply in begins:
            text.append(f"{begins.index(ply) + 1}.\N{NO-BREAK SPACE}", MUTED)
        is_last = ply == len(moves) - 1
        words = moves[ply].text.replace(" ", "\N{NO-BREAK SPACE}")
        text.append(words, "bold" if is_last else "not dim")
        text.append("  " if ply + 1 in begins else " ")
    return Group(*parts, Text(), text)


def _analysis(session: Session) -> Iterator[RenderableType]:
    latest = session.latest_decision()
    if latest is None:
        yield Text("no analysis yet", MUTED)
        return
    ply, decision = latest
    game, state = session.game, session.states[ply]
    player = int(state.current_player)
    about = Text(f"{session.name} on move {ply + 1}", MUTED)
    expected = expected_value(decision)
    if expected is not None:
        about.append(f": expects {value_text(game, player, expected)}", "bold not dim")
    yield about
    ranked = rank_moves(decision)[:SHOWN_MOVES]
    if ranked:
        has_search = decision.analysis is not None
        headings = ["move", "prior", *(["visits", "value"] if has_search else [])]
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True)
        for _ in headings[1:]:
            table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_row(*(Text(heading, MUTED) for heading in headings), "")
        weights = [m.prior if m.visits is None else m.visits for m in ranked]
        largest = max(*weights, 1e-9)
        for number, (move, weight) in enumerate(zip(ranked, weights, strict=True)):
            row = [game.action_to_text(state, move.action), f"{100 * move.prior:.1f}%"]
            if has_search:
                row += [
                    str(move.visits),
                    "" if move.value is None else signed(move.value),
                ]
            bar = Text("█" * round(BAR_WIDTH * weight / largest), ACCENT)
            table.add_row(*(Text(t, "" if number else "bold") for t in row), bar)
        yield table
    line = expected_line(game, state, decision)
    if line:
        yield Text("then ", MUTED).append(" ".join(line), "not dim")
    values = session.values()
    if values:
        yield Text(f"{side_names(game)[0]}: ", MUTED).append(
            sparkline(values, 24), ACCENT
        )


class Pointing:
    """The moves of a position by their cells.

    unplaced: legal actions without a cell, such as a pass.
    """

    def __init__(self, game: Game, state: State, legal: list[int]):
        self._is_by_column = not game.row_labels
        self._actions: dict[tuple[Cell, ...], int] = {}
        self._ends: dict[Cell, list[Cell]] = {}  # by start
        self._targets: list[Cell] = []
        self.unplaced: list[int] = []
        for action in legal:
            cells = game.action_cells(state, action)
            if not cells:
                self.unplaced.append(action)
                continue
            # Of several promotions, the first is played; the others must be typed.
            self._actions.setdefault(tuple(map(self._key, cells)), action)
            if len(cells) == 1:
                self._targets.append(cells[0])
            else:
                self._ends.setdefault(cells[0], []).append(cells[1])
        empty = int((np.asarray(game.board(state)) < 0).sum())
        self._has_hints = len(self._targets) <= empty // 2

    def action(self, cells: tuple[Cell, ...]) -> int | None:
        """Returns the action of the given cells, None if there is none."""
        return self._actions.get(tuple(map(self._key, cells)))

    def can_begin(self, cell: Cell) -> bool:
        """Returns whether a piece in this cell can move."""
        return cell in self._ends

    def hints(self, start: Cell | None) -> list[Cell]:
        """Returns the cells to highlight: the ends of moves from `start`, or without
        `start` the cells of moves, unless these are most of the empty cells."""
        if start is not None:
            return self._ends.get(start, [])
        return self._targets if self._has_hints else []

    def _key(self, cell: Cell) -> Cell:
        return (0, cell[1]) if self._is_by_column else cell


class Board(Widget):
    """Shows a session's position; moves are chosen by pointing.

    Args:
        session: the session.
        play: called with a chosen action.
        miss: called when the user points at a cell without a move.
    """

    def __init__(
        self,
        session: Session,
        play: Callable[[int], None],
        miss: Callable[[], None],
    ):
        super().__init__(id="board")
        self._session, self._play, self._miss = session, play, miss
        self._theme = theme_of(session.game)
        self._board = np.asarray(session.game.board(session.state))
        height, width = self._board.shape
        self._cursor: Cell = (height // 2, width // 2)
        self._start: Cell | None = None  # selected start of a move
        self.update()

    def update(self) -> None:
        """Shows the current position."""
        session, self._start = self._session, None
        legal = session.legal_actions() if session.is_persons_turn else []
        self._board = np.asarray(session.game.board(session.state))
        self._pointing = Pointing(session.game, session.state, legal)
        self.refresh()

    @property
    def unplaced(self) -> list[int]:
        """The legal actions without a cell."""
        return self._pointing.unplaced

    @property
    def smallest_size(self) -> tuple[int, int]:
        """The rows and columns of the smallest drawing."""
        return smallest(self._session.game, self._theme)

    def render(self) -> Text:
        """Returns the board, centered."""
        found = self._frame()
        if found is None:
            rows, columns = self.smallest_size
            return Text(
                f"This window is too small for the board: it needs {columns} columns "
                f"and {rows} rows and has {self.size.width} and {self.size.height}. "
                "Enlarge the window, or type moves."
            )
        session = self._session
        marked = session.game.winning_cells(session.state)
        last_action = session.last_action
        if last_action is not None and not marked:
            marked = session.game.last_cells(session.state, last_action)
        scene = Scene(
            board=self._board,
            marked=marked,
            hinted=self._pointing.hints(self._start),
            selected=self._start,
            cursor=self._cursor,
        )
        top, left = self._offset(found)
        text = Text("\n" * top)
        for line in draw(found, scene).split("\n"):
            text.append_text(Text(" " * left).append_text(line)).append("\n")
        return text

    def move_cursor(self, down: int, right: int) -> None:
        """Moves the cursor."""
        height, width = self._board.shape
        row, column = self._cursor
        self._cursor = (row + down) % height, (column + right) % width
        self.refresh()

    def point(self) -> None:
        """Points at the cell under the cursor."""
        self._point(self._cursor)

    def deselect(self) -> None:
        """Deselects the piece."""
        self._start = None
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Points at the cell under the mouse."""
        found = self._frame()
        if found is None:
            return
        top, left = self._offset(found)
        cell = found.cell_at(event.y - top, event.x - left)
        if cell is not None:
            self._cursor = cell
            self._point(cell)

    def _point(self, cell: Cell) -> None:
        start, self._start = self._start, None
        cells = (cell,) if start is None else (start, cell)
        action = self._pointing.action(cells)
        if action is not None:
            self._play(action)
        elif self._pointing.can_begin(cell) and cell != start:
            self._start = cell
        elif start is None:
            self._miss()
        self.refresh()

    def _frame(self) -> Frame | None:
        height, width = self.size.height, self.size.width
        return frame(self._session.game, self._theme, height, width)

    def _offset(self, found: Frame) -> tuple[int, int]:
        """Returns the number of empty rows above the board and columns to its left."""
        return (
            (self.size.height - found.rows) // 2,
            (self.size.width - found.columns) // 2,
        )


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
        super().__init__(id="entry", compact=True, select_on_focus=False)
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
        self.suggester = SuggestFromList([*moves, *commands], case_sensitive=False)
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

    async def action_complete(self) -> None:
        """Accepts the suggested completion."""
        if self.suggester is not None:
            found = await self.suggester.get_suggestion(self.value.casefold())
            self.value = found or self.value
        self.action_end()

    def action_clear(self) -> None:
        """Clears the line and deselects the piece."""
        self.clear()
        self._board.deselect()


class PlayApp(App[None]):
    """Shows the games of a session on the full screen.

    Args:
        session: the session.
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

    def __init__(self, session: Session):
        super().__init__()
        self.session = session
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
            self.session.background.run_next(waits=False)
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
            case Moved(player, move, outcome):
                self._last_move = time.monotonic()
                if move.decision is not None:
                    value = expected_value(move.decision)
                    expects = ""
                    if value is not None:
                        expects = f", expects {value_text(game, player, value)}"
                    name = session.name_of(player)
                    rolled = f"{outcome}: " if outcome else ""
                    self.say(f"{rolled}{name} plays {move.text}{expects}")
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
        if session.outcome_of_chance:
            turn = f"{session.outcome_of_chance}: {turn}"
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
