"""An external player for tests."""

from azjax.games.host import legal_actions
from azjax.players import MoveDecision


class Engine:
    """An external player that plays the first legal action.

    value: returns the value of a position after moves.
    """

    def __init__(self, value=lambda moves: None):
        self.value, self.shown, self.num_closed = value, [], 0

    def start_session(self, game, seed):
        self.game = game
        return self

    def choose(self, state, moves):
        self.shown.append(list(moves))
        action = legal_actions(self.game, state)[0]
        return MoveDecision(action, value=self.value(moves))

    def close(self):
        self.num_closed += 1
