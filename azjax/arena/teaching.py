"""Labels of games by another player, to learn from."""

import contextlib

import numpy as np

from azjax.data.importing import Labels, Teacher
from azjax.games import Game, GameRecord
from azjax.games.host import first_state, next_state, rewards, waits_for_chance
from azjax.players.core import (
    AnyPlayer,
    ForfeitError,
    choose_legal,
    start_session,
)


def make_teacher(player: AnyPlayer) -> Teacher:
    """Returns a function that labels a game with a player's moves and evaluations.

    The policy of a position is the player's, or, if it gives none, the move that it
    chooses. Random opening moves and outcomes of chance get no labels. The value after
    the last move is the result if the rules end the game there, else another
    evaluation.

    The function raises ValueError if the player does not start or answer, makes an
    illegal move, or gives no evaluation.
    """

    def label(game: Game, record: GameRecord) -> Labels:
        policies: list[dict[int, float]] = [{}] * record.opening_moves
        values: list[float | None] = [None] * record.opening_moves
        try:
            with contextlib.closing(start_session(player, game, seed=0)) as session:
                state = first_state(game)
                # The position before each move, then the one after the last.
                for number in range(len(record.moves) + 1):
                    if number:
                        state = next_state(game, state, record.moves[number - 1])
                    if state.terminated:
                        policies.append({})
                        values.append(rewards(game, state)[0])
                    elif number < record.opening_moves:
                        continue
                    elif waits_for_chance(game, state):
                        policies.append({})
                        values.append(None)
                    else:
                        played = record.moves[:number]
                        decision = choose_legal(session, game, state, played)
                        if decision.value is None:
                            raise ForfeitError("it gives no evaluation")
                        policy = {decision.action: 1.0}
                        if decision.policy is not None:
                            actions = np.flatnonzero(decision.policy)
                            shares = decision.policy[actions].tolist()
                            policy = dict(zip(actions.tolist(), shares, strict=True))
                        sign = 1 - 2 * int(state.current_player)  # for player 0
                        policies.append(policy)
                        values.append(decision.value * sign)
        except ForfeitError as error:
            first, second = record.names
            raise ValueError(
                f"the teacher failed at move {len(policies) + 1} of a game of {first} "
                f"against {second}: {error}"
            ) from error
        return Labels(policies, values)

    return label
