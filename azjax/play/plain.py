"""The line-based interface of `azjax play`, for any terminal or pipe."""

from collections.abc import Callable

from azjax.play.session import (
    AdviceFailed,
    Advised,
    Event,
    Forfeited,
    GameOver,
    Jumped,
    Moved,
    Session,
)
from azjax.play.text_output import (
    analysis_lines,
    expected_value,
    side_names,
    value_text,
)

MAX_SHOWN = 20  # moves in the prompt


class Plain:
    """Prints the games of a session and executes the user's lines.

    Args:
        session: the session.
        read: returns a line for a prompt; raises EOFError at the end of the input.
        write: prints a line.
        note: prints a progress message.
    """

    def __init__(
        self,
        session: Session,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = print,
        note: Callable[[str], object] = print,
    ):
        self.session = session
        self.read, self.write, self.note = read, write, note
        self.is_new = True  # whether the position must be printed
        session.observe(self.observe)

    def begin(self, load: str | None = None) -> None:
        """Starts a game and waits until it has started.

        Args:
            load: path of a saved game to continue.

        Raises:
            ValueError: the game cannot be loaded.
        """
        message = self.session.begin(load)
        game, players = self.session.game, self.session.player_names
        sides = side_names(game)
        if len(game.pieces) == 2:  # as in the text of the board
            sides = [f"{sides[number]} ({game.pieces[number]})" for number in (0, 1)]
        self.write(
            f"{game}: {sides[0]} {players[0]}, {sides[1]} {players[1]}; `help` shows "
            "what you can type"
        )
        if message:
            self.write(message)
        if not self.session.is_started:
            self.note(f"compiling {self.session.name} ...")
        while not self.session.is_started:
            self.session.background.run_next()

    def run(self) -> None:
        """Plays until the user quits or the input ends."""
        while not self.session.is_left:
            while self.session.thinking:
                self.session.background.run_next()
            self.show()
            try:
                line = self.read(self.prompt())
            except EOFError:
                return
            self.execute(line)

    def show(self) -> None:
        """Prints the position if it has changed."""
        session = self.session
        if self.is_new:
            board = session.game.to_text(session.state, session.last_action)
            self.write(f"\n{board}")
            if session.outcome_of_chance:
                self.write(session.outcome_of_chance)
            if session.result is not None:
                self.write(session.outcome())
        self.is_new = False

    def prompt(self) -> str:
        """Returns the prompt for the next line."""
        session = self.session
        if session.result is not None:
            return "the game is over (new, back, save, quit): "
        legal = session.legal_actions()
        shown = legal[:: max(1, -(-len(legal) // MAX_SHOWN))]
        state, game = session.state, session.game
        moves = " ".join(game.action_to_text(state, action) for action in shown)
        whose = "your move"
        if session.opponent_session is None:
            whose = f"a move of the {side_names(game)[session.player]}"
        return f"{whose} ({moves}{'' if len(shown) == len(legal) else ' ...'}): "

    def execute(self, line: str) -> None:
        """Executes a line and prints its message or error."""
        try:
            message = self.session.do(line)
        except ValueError as error:
            message = str(error)
        if message:
            self.write(message)

    def observe(self, event: Event) -> None:
        """Prints an event of the game."""
        session, game = self.session, self.session.game
        match event:
            case Jumped():
                self.is_new = True
            case Moved(player, move, outcome):
                self.is_new = True
                if move.decision is not None:
                    value = expected_value(move.decision)
                    expects = ""
                    if value is not None:
                        expects = f" (expects {value_text(game, player, value)})"
                    name = session.name_of(player)
                    rolled = f"{outcome}: " if outcome else ""
                    self.write(f"{rolled}{name} plays {move.text}{expects}")
                    if session.is_analyzing:
                        self.show_analysis()
            case Advised(decision):
                text = game.action_to_text(session.state, decision.action)
                self.write(f"try {text}")
                if session.is_analyzing:
                    self.show_analysis()
            case AdviceFailed(reason):
                self.write(f"no advice: {reason}")
            case Forfeited():
                self.write(session.forfeit_text(event))
            case GameOver():
                self.is_new = True

    def show_analysis(self) -> None:
        """Prints the latest decision."""
        latest = self.session.latest_decision()
        if latest is not None:
            ply, decision = latest
            state = self.session.states[ply]
            for text in analysis_lines(self.session.game, state, decision):
                self.write(f"  {text}")
