"""Labels of games by another player, to learn from."""

import contextlib

import numpy as np

from azjax.data.importing import Labels, Teacher
from azjax.games import Game, GameRecord
from azjax.games.host import first_state, next_state, rewards
from azjax.players.session import (
    ExternalPlayer,
    ForfeitError,
    PlayerSession,
    choose_legal,
    start_session,
)


def make_teacher(player: ExternalPlayer) -> Teacher:
    """Returns the function that labels the positions of a game, except the random
    opening ones, with a player's moves and evaluations.

    The policy is the player's, or, if it gives none, the move that it chooses. The
    value after the last move is the result if the rules end the game there.

    It raises ValueError if the player does not start or answer, makes an illegal move,
    or gives no evaluation.
    """

    def label(game: Game, record: GameRecord) -> Labels:
        try:
            with contextlib.closing(start_session(player, game, seed=0)) as session:
                return _labels(session, game, record)
        except ForfeitError as error:
            raise ValueError(f"the teacher failed: {error}") from error

    return label


def _labels(session: PlayerSession, game: Game, record: GameRecord) -> Labels:
    policies: list[dict[int, float]] = []
    values: list[float | None] = []
    state = first_state(game)
    for number, move in enumerate(record.moves):
        policy, value = {}, None
        if number >= record.opening_moves:
            decision = choose_legal(session, game, state, record.moves[:number])
            if decision.value is None:
                raise ValueError("the teacher gives no evaluations of positions")
            policy = {decision.action: 1.0}
            if decision.policy is not None:
                actions = np.flatnonzero(decision.policy)
                shares = decision.policy[actions]
                policy = dict(zip(actions.tolist(), shares.tolist(), strict=True))
            value = decision.value * (1 - 2 * int(state.current_player))
        policies.append(policy)
        values.append(value)
        state = next_state(game, state, move)
    values.append(rewards(game, state)[0] if state.terminated else None)
    return Labels(policies, values)
