"""Players of azjax as OpenSpiel's bots, to meet OpenSpiel's own.

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

Connect Four, tic-tac-toe, Othello, Hex and Go have the same numbers for their actions
here and there (the boards of Go are then mirror images, which its rules do not mind);
for other games `AzjaxBot` is told how they correspond.
"""

import functools
from collections.abc import Callable

import jax
import numpy as np

from azjax.games import Game, State
from azjax.players.session import AnyPlayer, start_session

try:
    import pyspiel
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "this needs the library OpenSpiel: pip install 'azjax[open_spiel]'",
        name="pyspiel",
    ) from error


def same_action(state: pyspiel.State, action: int) -> int:
    """Returns the action as it is: the numbers are those of OpenSpiel."""
    del state
    return action


class AzjaxBot(pyspiel.Bot):
    """Plays a game of OpenSpiel as a player of azjax does.

    The moves made so far are made in the game of azjax too, from its first position.
    Before each move of its own, the bot makes sure that both games allow the same
    actions.

    Args:
        player: who chooses the moves.
        game: the game of azjax, by the same rules and with the same options as that of
            OpenSpiel.
        to_azjax: `(state, action)`, a position of OpenSpiel and one of its legal
            actions, to the number of the same action in azjax.
        seed: of the player's chance.
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
        self._player = player
        self._game = game
        self._to_azjax = to_azjax
        self._seed = seed
        self._seat = start_session(player, game, seed)

    def restart_at(self, state: pyspiel.State) -> None:
        """Forgets what the player remembers of the game before."""
        del state
        self._seat.close()
        self._seed += 1  # of other chances than in the game before
        self._seat = start_session(self._player, self._game, self._seed)

    def step(self, state: pyspiel.State) -> int:
        """Returns the player's move.

        Raises:
            ValueError: the games differ; the message says how.
            ForfeitError: the player cannot go on.
        """
        moves, position, allowed = self._replay(state)
        actions = {self._to_azjax(state, a): a for a in state.legal_actions()}
        self._check(state, set(np.flatnonzero(allowed).tolist()), set(actions))
        return actions[self._seat.choose(position, moves).action]

    def _replay(self, state: pyspiel.State) -> tuple[list[int], State, jax.Array]:
        """Returns the actions of azjax that led to `state`, the position after them,
        and which actions are legal there."""
        walked = state.get_game().new_initial_state()
        actions = np.full(self._game.max_moves, -1, np.int32)
        history = state.history()
        if len(history) > self._game.max_moves:
            raise ValueError(
                f"{self._game!r} lasts at most {self._game.max_moves} moves, but "
                f"{state.get_game()} is not over after {len(history)}"
            )
        for number, action in enumerate(history):
            actions[number] = self._to_azjax(walked, action)
            walked.apply_action(action)
        position, allowed = _play(self._game, actions, len(history))
        return actions[: len(history)].tolist(), position, allowed

    def _check(
        self, state: pyspiel.State, allowed: set[int], actions: set[int]
    ) -> None:
        if actions != allowed:
            raise ValueError(
                f"{self._game!r} and {state.get_game()} allow different actions after "
                f"{state.history()}, as azjax numbers them: azjax alone "
                f"{sorted(allowed - actions)}, OpenSpiel alone "
                f"{sorted(actions - allowed)}; where only the numbers differ, "
                "`to_azjax` tells how"
            )


@functools.partial(jax.jit, static_argnames="game")
def _play(
    game: Game, actions: jax.Array, num_moves: jax.Array
) -> tuple[State, jax.Array]:
    """Returns the position after the first `num_moves` of `[max_moves]` actions, and
    `[A]` bool, True where an action is legal there."""

    def play_move(index: jax.Array, state: State) -> State:
        return game.step(state, actions[index])

    state = jax.lax.fori_loop(0, num_moves, play_move, game.init())
    return state, game.legal_action_mask(state) & ~state.terminated
