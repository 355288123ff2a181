"""A game's compiled rules; positions are named by the actions that lead to them."""

import collections
import copy
import threading
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from azjax.games import Game, State
from azjax.games.host import compiled
from azjax.play.server.memory import PROGRAM_BYTES, array_bytes


class Rules:
    """A compiled game with a cache of its latest positions; thread-safe.

    game: the game with compiled functions.
    setup: FEN of the first position; empty for the game's own.
    last_used: time of the last use, for the `MemoryBudget`; set by the
        `PlayerRegistry`.

    Args:
        game: compiled here, which takes some seconds.
        num_positions: size of the cache, in positions.
        num_bytes: size of the cache, in bytes.
    """

    is_busy = False

    def __init__(self, game: Game, num_positions: int, num_bytes: int = 2**26):
        self.game = compiled(game)
        self.setup = ""
        self.last_used = 0
        self._lock = threading.Lock()
        self._cache: collections.OrderedDict[tuple[str, tuple[int, ...]], State] = (
            collections.OrderedDict()
        )
        self._first = on_host(self.game.init())
        # The key of a position, its actions, takes memory too.
        self._position_bytes = array_bytes(self._first) + 8 * game.max_moves
        self._num_positions = min(num_positions, num_bytes // self._position_bytes)

    @property
    def bytes(self) -> int:
        """Estimated size."""
        return PROGRAM_BYTES + len(self._cache) * self._position_bytes

    def shrink(self) -> None:
        """Clears the cache of positions."""
        with self._lock:
            self._cache.clear()

    def set_up(self, text: str) -> "Rules":
        """Returns rules with the first position of a FEN, which share the cache.

        Raises:
            ValueError: the text is no FEN, or the game has none.
        """
        from_fen = getattr(self.game, "from_fen", None)
        if from_fen is None:
            raise ValueError(
                f"positions of {self.game} cannot be set up: it has no FEN"
            )
        rules = copy.copy(self)
        rules.setup, rules._first = text, on_host(from_fen(text))
        return rules

    def state(self, actions: Sequence[int]) -> State:
        """Returns the position after some actions, in NumPy.

        Raises:
            ValueError: an action is illegal.
        """
        actions = tuple(actions)
        ply, state = 0, self._first
        with self._lock:
            for length in range(len(actions), 0, -1):
                key = self.setup, actions[:length]
                if key in self._cache:  # the longest cached prefix
                    ply, state = length, self._cache[key]
                    self._cache.move_to_end(key)
                    break
        for number, action in enumerate(actions[ply:], start=ply + 1):
            legal = self.legal_actions(state)
            if action not in legal:
                allowed = " ".join(map(str, legal)) or "none, the game is over"
                raise ValueError(
                    f"action {action}, number {number}, is not legal; legal: "
                    f"{allowed if len(allowed) < 200 else f'{allowed[:200]} ...'}"
                )
            state = self.after(state, action)
            with self._lock:
                self._cache[self.setup, actions[:number]] = state
                if len(self._cache) > self._num_positions:
                    self._cache.popitem(last=False)
        return state

    def after(self, state: State, action: int) -> State:
        """Returns the position after a legal action, in NumPy."""
        # Passing a NumPy number is faster than making a `jnp.int32`.
        number: Any = np.int32(action)
        return on_host(self.game.step(state, number))

    def parse(self, actions: Sequence[int], text: str) -> int:
        """Returns the action that a text names after some actions.

        Raises:
            ValueError: the text names no legal action.
        """
        return self.game.text_to_action(self.state(actions), text)

    def legal_actions(self, state: State) -> list[int]:
        """Returns the legal actions, none when the game is over."""
        if state.terminated:
            return []
        return np.flatnonzero(self.game.legal_action_mask(state)).tolist()

    def rewards(self, state: State) -> list[float]:
        """Returns the rewards of both players."""
        return np.asarray(self.game.rewards(state)).tolist()


def on_host(state: State) -> State:
    """Returns a position as NumPy arrays."""
    return jax.tree.map(np.asarray, state)
