"""A game line by line, in any terminal or pipe."""

from collections.abc import Callable

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
from azjax.play.session import Session
from azjax.play.text_output import analysis_lines, opinion, side_names, value_text

EXAMPLES = 20  # moves that are shown when the user is asked for one


class Plain:
    """Shows a session's games as lines, and does what the user's lines say.

    Args:
        session: whose seats think in `pump.background`.
        pump: where to wait for them.
        read: asks for a line and returns it; raises EOFError at the end.
        write: shows a line.
        note: shows a line that says why nothing happens for a while.
    """

    def __init__(
        self,
        session: Session,
        pump: Pump,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = print,
        note: Callable[[str], object] = print,
    ):
        self.session, self.pump = session, pump
        self.read, self.write, self.note = read, write, note
        self.is_new = True  # whether the position has not been shown
        session.controller.observe(self.tell)

    def begin(self, load: str | None = None) -> None:
        """Begins, and waits until the game has started.

        Args:
            load: a saved game to begin with.

        Raises:
            ValueError: it cannot be loaded.
        """
        said = self.session.begin(load)
        names = side_names(self.session.game)
        self.write(
            f"{self.session.game}: {names[0]} {self.session.player_names[0]}, "
            f"{names[1]} {self.session.player_names[1]}; `help` shows what you can type"
        )
        if said:
            self.write(said)
        if not self.session.controller.is_started:
            self.note(f"compiling {self.session.name} ...")
        while not self.session.controller.is_started:
            self.pump.wait()

    def run(self) -> None:
        """Plays until the user leaves or there are no more lines."""
        while not self.session.is_left:
            while self.session.controller.thinking:
                self.pump.wait()
            self.show()
            try:
                line = self.read(self.prompt())
            except EOFError:
                return
            self.obey(line)

    def show(self) -> None:
        """Shows the position if it is another than the last time."""
        controller = self.session.controller
        if self.is_new:
            last_action = controller.moves[-1].action if controller.moves else None
            self.write("\n" + self.session.game.to_text(controller.state, last_action))
            if controller.result is not None:
                self.write(self.session.outcome())
        self.is_new = False

    def prompt(self) -> str:
        """Returns the question for the next line."""
        controller = self.session.controller
        if controller.result is not None:
            return "the game is over (new, back, save, quit): "
        legal = controller.legal_actions()
        shown = (
            legal if len(legal) <= EXAMPLES else legal[:: -(-len(legal) // EXAMPLES)]
        )
        state, game = controller.state, self.session.game
        moves = " ".join(game.action_to_text(state, action) for action in shown)
        whose = "your move"
        if self.session.seat is None:
            whose = f"a move of the {side_names(game)[controller.player]}"
        return f"{whose} ({moves}{'' if len(shown) == len(legal) else ' and others'}): "

    def obey(self, line: str) -> None:
        """Does what a line says, or explains why not."""
        try:
            said = self.session.do(line)
        except ValueError as error:
            said = str(error)
        if said:
            self.write(said)

    def tell(self, event: Event) -> None:
        """Observes the game."""
        game, controller = self.session.game, self.session.controller
        match event:
            case Jumped():
                self.is_new = True
            case Moved(player, move):
                self.is_new = True
                if move.decision is not None:
                    value = opinion(move.decision)
                    expects = ""
                    if value is not None:
                        expects = f" (expects {value_text(game, player, value)})"
                    name = self.session.addressed(player)
                    self.write(f"{name} plays {move.text}{expects}")
                    if self.session.is_analysing:
                        self.explain()
            case Advised(decision):
                text = game.action_to_text(controller.state, decision.action)
                self.write(f"try {text}")
                if self.session.is_analysing:
                    self.explain()
            case AdviceFailed(reason):
                self.write(f"no advice: {reason}")
            case Forfeited():
                self.write(self.session.farewell(event))
            case GameOver():
                self.is_new = True

    def explain(self) -> None:
        """Shows what was thought last."""
        latest = self.session.latest_decision()
        if latest is not None:
            ply, decision = latest
            state = self.session.controller.states[ply]
            for text in analysis_lines(self.session.game, state, decision):
                self.write(f"  {text}")
