"""A game's rules for visitors who name a position by the actions that lead there."""

import collections
import threading
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from azjax.games import Game, State
from azjax.games.host import compiled
from azjax.play.server.memory import PROGRAM_BYTES, array_bytes


class Rules:
    """Positions by their actions, the newest of which are kept; used by any thread.

    game: with compiled functions.
    used: when it was used last; set by the `House`.

    Args:
        game: compiled here, which takes some seconds.
        num_positions: how many are kept, at most.
        num_bytes: about what they may take.
    """

    is_busy = False

    def __init__(self, game: Game, num_positions: int, num_bytes: int = 2**26):
        self.game = compiled(game)
        self.used = 0
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[tuple[int, ...], State] = (
            collections.OrderedDict()
        )
        self._first = on_host(self.game.init())
        # The actions that lead to a position are kept with it.
        self._position_bytes = array_bytes(self._first) + 8 * game.max_moves
        self._num_positions = min(num_positions, num_bytes // self._position_bytes)

    @property
    def bytes(self) -> int:
        """About what it takes."""
        return PROGRAM_BYTES + len(self._known) * self._position_bytes

    def shrink(self) -> None:
        """Forgets all positions."""
        with self._lock:
            self._known.clear()

    def state(self, actions: Sequence[int]) -> State:
        """Returns the position after some actions from the first one, on the host.

        Raises:
            ValueError: one of them is not legal.
        """
        actions = tuple(actions)
        ply, state = self._nearest(actions)
        for number in range(ply, len(actions)):
            state = self._step(state, number, actions[number])
            self._keep(actions[: number + 1], state)
        return state

    def after(self, state: State, action: int) -> State:
        """Returns the position after a legal action, on the host."""
        # Compiled functions take NumPy's numbers sooner than `jnp.int32` makes its own.
        number: Any = np.int32(action)
        return on_host(self.game.step(state, number))

    def read(self, actions: Sequence[int], text: str) -> int:
        """Returns the action that a text means after some actions.

        Raises:
            ValueError: it means none that is legal there.
        """
        return self.game.text_to_action(self.state(actions), text)

    def legal_actions(self, state: State) -> list[int]:
        """Returns what may be played; nothing once the game is over."""
        if state.terminated:
            return []
        return np.flatnonzero(self.game.legal_action_mask(state)).tolist()

    def rewards(self, state: State) -> list[float]:
        """Returns the results of both players."""
        return np.asarray(self.game.rewards(state)).tolist()

    def _step(self, state: State, number: int, action: int) -> State:
        legal = self.legal_actions(state)
        if action not in legal:
            allowed = " ".join(map(str, legal)) or "none, the game is over"
            raise ValueError(
                f"action {action}, number {number + 1}, is not legal; "
                f"legal: {allowed if len(allowed) < 200 else f'{allowed[:200]} ...'}"
            )
        return self.after(state, action)

    def _nearest(self, actions: tuple[int, ...]) -> tuple[int, State]:
        """Returns the longest beginning of the actions that is known."""
        with self._lock:
            for ply in range(len(actions), 0, -1):
                state = self._known.get(actions[:ply])
                if state is not None:
                    self._known.move_to_end(actions[:ply])
                    return ply, state
        return 0, self._first

    def _keep(self, actions: tuple[int, ...], state: State) -> None:
        with self._lock:
            self._known[actions] = state
            if len(self._known) > self._num_positions:
                self._known.popitem(last=False)


def on_host(state: State) -> State:
    """Returns a position as NumPy arrays."""
    return jax.tree.map(np.asarray, state)
