"""A game against a player, line by line, in any terminal or pipe."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import Game, State
from azjax.players import Choice, Player, start, think

HELP = "moves as below, `hint` for the opponent's advice, `quit` to stop"
EXAMPLES = 20  # moves that are shown when the user is asked for one


def play(
    game: Game,
    opponent: Player,
    *,
    user_player: int,
    seed: int = 0,
    read: Callable[[str], str] = input,
    write: Callable[[str], object] = print,
) -> None:
    """Conducts one game between the user and an opponent.

    Args:
        game: what is played.
        opponent: who answers.
        user_player: 0 if the user begins, 1 if the opponent does.
        seed: of the opponent's chance.
        read: asks for a line and returns it; raises EOFError at the end.
        write: shows a line.
    """
    step = jax.jit(game.step)
    state, last_action, rng_key = game.init(), None, jax.random.key(seed)
    adviser = _Adviser(opponent, game)
    write(HELP)
    while not bool(state.terminated):
        write("\n" + game.to_text(state, last_action))
        rng_key, move_key = jax.random.split(rng_key)
        if int(state.current_player) == user_player:
            action = _ask(game, state, adviser, move_key, read=read, write=write)
            if action is None:
                return
        else:
            choice = adviser.choose(move_key, state)
            action = int(choice.action[0])
            write(
                f"the opponent plays {game.action_to_text(state, action)} "
                f"(expects {float(choice.value[0]):+.2f})"
            )
        state, last_action = step(state, jnp.int32(action)), action
    write("\n" + game.to_text(state, last_action))
    result = float(game.rewards(state)[user_player])
    write("you win" if result > 0 else "you lose" if result < 0 else "a draw")


def _ask(
    game: Game,
    state: State,
    adviser: "_Adviser",
    rng_key: jax.Array,
    *,
    read: Callable[[str], str],
    write: Callable[[str], object],
) -> int | None:
    """Returns the user's move, or None if there will be no more."""
    moves = _examples(game, state)
    while True:
        try:
            text = read(f"your move ({moves}): ").strip()
        except (EOFError, KeyboardInterrupt):
            return None
        if text in ("quit", "q"):
            return None
        if text == "hint":
            choice = adviser.choose(rng_key, state)
            write(f"try {game.action_to_text(state, int(choice.action[0]))}")
            continue
        try:
            return game.text_to_action(state, text)
        except ValueError as error:
            write(str(error))


def _examples(game: Game, state: State) -> str:
    """Returns the legal moves, or where there are many of them some."""
    legal = np.flatnonzero(np.asarray(game.legal_action_mask(state))).tolist()
    shown = legal if len(legal) <= EXAMPLES else legal[:: -(-len(legal) // EXAMPLES)]
    moves = " ".join(game.action_to_text(state, action) for action in shown)
    return moves if len(shown) == len(legal) else f"{moves} and others"


class _Adviser:
    """A player in one game, with what it remembers of it."""

    def __init__(self, player: Player, game: Game):
        self._player = player
        self._memory = start(player, _batch_of_one(game.init()))

    def choose(self, rng_key: jax.Array, state: State) -> Choice:
        choice, self._memory = think(
            self._player, rng_key, _batch_of_one(state), self._memory
        )
        return choice


def _batch_of_one(state: State) -> State:
    return jax.tree.map(lambda leaf: leaf[None], state)
