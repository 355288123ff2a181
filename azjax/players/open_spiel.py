"""Azjax players as OpenSpiel bots.

>>> import jax, pyspiel
>>> import numpy as np
>>> from open_spiel.python.algorithms import evaluate_bots
>>> from azjax import games, players
>>> from azjax.players.open_spiel import AzjaxBot
>>> game = games.make("tic_tac_toe")
>>> player = players.load("alphazero:pretrained?simulations=64", game)
>>> bots = [AzjaxBot(player, game), pyspiel.make_uniform_random_bot(1, 0)]
>>> state = pyspiel.load_game("tic_tac_toe").new_initial_state()
>>> evaluate_bots.evaluate_bots(state, bots, np.random)
[1.0, -1.0]

Connect Four, tic-tac-toe, Othello, Hex and Go have the same action numbers in both
libraries (Go boards are mirror images, which does not matter to its rules); for other
games pass `to_azjax`, for mancala, which is `kalah:empty_capture=false`, for example:

>>> def to_azjax(state, action):
...     return action - (1 if state.current_player() == 0 else 8)
"""

from collections.abc import Callable

from azjax.games import Game
from azjax.games.host import first_state, legal_actions, next_state
from azjax.players.core import AnyPlayer, start_session

try:
    import pyspiel
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "this needs the library OpenSpiel: pip install 'azjax[open_spiel]'",
        name="pyspiel",
    ) from error


def same_action(state: pyspiel.State, action: int) -> int:
    """Returns the action itself, for games with the same action numbers."""
    del state
    return action


class AzjaxBot(pyspiel.Bot):
    """An OpenSpiel bot that plays the moves of an azjax player.

    At each of its moves the bot replays the game in azjax and checks that both games
    have the same legal actions.

    Args:
        player: chooses the moves.
        game: the azjax game with the rules and options of the OpenSpiel game, without
            chance.
        to_azjax: `(state, action) -> action`; converts a legal action of an OpenSpiel
            position to the azjax action.
        seed: seed of the player.
    """

    def __init__(
        self,
        player: AnyPlayer,
        game: Game,
        *,
        to_azjax: Callable[[pyspiel.State, int], int] = same_action,
        seed: int = 0,
    ):
        super().__init__()
        if game.num_outcomes:
            raise ValueError(
                f"{game!r} has chance: AzjaxBot is for games without chance"
            )
        self._player = player
        self._game = game
        self._to_azjax = to_azjax
        self._seed = seed
        self._session = start_session(player, game, seed)

    def restart_at(self, state: pyspiel.State) -> None:
        """Starts a new session, with the next seed."""
        del state
        self._session.close()
        self._seed += 1
        self._session = start_session(self._player, self._game, self._seed)

    def step(self, state: pyspiel.State) -> int:
        """Returns the player's move.

        Raises:
            ValueError: the two games differ.
            ForfeitError: the player cannot continue.
        """
        history = state.history()
        if len(history) > self._game.max_moves:
            raise ValueError(
                f"{self._game!r} lasts at most {self._game.max_moves} moves, but "
                f"{state.get_game()} is not over after {len(history)}"
            )
        walked, position = state.get_game().new_initial_state(), first_state(self._game)
        moves = []
        for action in history:
            moves.append(self._to_azjax(walked, action))
            walked.apply_action(action)
            position = next_state(self._game, position, moves[-1])
        legal = set(legal_actions(self._game, position))
        actions = {self._to_azjax(state, a): a for a in state.legal_actions()}
        if actions.keys() != legal:
            raise ValueError(
                f"{self._game!r} and {state.get_game()} have different legal actions "
                f"after {history}, in azjax's numbers: only in azjax "
                f"{sorted(legal - actions.keys())}, only in OpenSpiel "
                f"{sorted(actions.keys() - legal)}; if only the numbers differ, pass "
                "`to_azjax`"
            )
        return actions[self._session.choose(position, moves).action]
