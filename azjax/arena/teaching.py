"""Labels of games by another player, to learn from."""

import contextlib
from collections.abc import Iterator

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
    """Returns a function that labels a game with a player's moves and evaluations.

    The policy of a position is the player's, or, if it gives none, the move that it
    chooses. Random opening moves get no labels. The value after the last move is the
    result if the rules end the game there, else another evaluation.

    The function raises ValueError if the player does not start or answer, makes an
    illegal move, or gives no evaluation.
    """

    def label(game: Game, record: GameRecord) -> Labels:
        policies: list[dict[int, float]] = [{}] * record.opening_moves
        values: list[float | None] = [None] * record.opening_moves
        try:
            with contextlib.closing(start_session(player, game, seed=0)) as session:
                for policy, value in _asked(session, game, record):
                    policies.append(policy)
                    values.append(value)
        except ForfeitError as error:
            first, second = record.names
            raise ValueError(
                f"the teacher failed at move {len(policies) + 1} of a game of {first} "
                f"against {second}: {error}"
            ) from error
        return Labels(policies, values)

    return label


def _asked(
    session: PlayerSession, game: Game, record: GameRecord
) -> Iterator[tuple[dict[int, float], float]]:
    """Yields policy and value, for player 0, of each position after the random opening
    moves, the last one included."""
    state = first_state(game)
    for number in range(len(record.moves) + 1):
        if state.terminated:
            yield {}, rewards(game, state)[0]
        elif number >= record.opening_moves:
            decision = choose_legal(session, game, state, record.moves[:number])
            if decision.value is None:
                raise ForfeitError("it gives no evaluation")
            policy = {decision.action: 1.0}
            if decision.policy is not None:
                actions = np.flatnonzero(decision.policy)
                shares = decision.policy[actions].tolist()
                policy = dict(zip(actions.tolist(), shares, strict=True))
            yield policy, decision.value * (1 - 2 * int(state.current_player))
        if number < len(record.moves):
            state = next_state(game, state, record.moves[number])
