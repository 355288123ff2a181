"""Searches of a player in slices, which limits can end early."""

import time
from collections.abc import Callable

import jax
import numpy as np

from azjax.games import Game, State
from azjax.games.host import first_state
from azjax.play.incremental_search import Batch, IncrementalSearch, SlicePlan
from azjax.play.root_moves import RestrictedGame, RestrictedState, restricted
from azjax.play.uci.limits import Clock, Limits
from azjax.play.uci.report import Progress
from azjax.players import AlphaZeroPlayer, MCTSPlayer, MoveDecision, Player
from azjax.search import GumbelConfig

NUM_SLICES = 32  # of a search with the player's simulations


class Searcher:
    """Searches positions, each from an empty tree.

    A player without search chooses its move at once, without regard to limits.

    simulations: most simulations of a search, those of the player, for which its tree
        has room; 0 for a player without search.
    """

    def __init__(self, player: Player, game: Game, seed: int):
        """Prepares the search; `compile` compiles it.

        Args:
            player: a player that can be compiled.
            game: the game whose positions are searched.
            seed: seed of the player's random choices.
        """
        searches = isinstance(player, AlphaZeroPlayer | MCTSPlayer)
        self.simulations = player.simulations if searches else 0
        plan = None
        if searches:
            plan = SlicePlan(self.simulations, -(-self.simulations // NUM_SLICES))
        self._game = RestrictedGame(game)
        self._state = self._game.at(first_state(game))
        self._slices = IncrementalSearch(restricted(player), plan, self._state)
        # Sequential halving divides all simulations in advance.
        self._needs_total = isinstance(player, AlphaZeroPlayer) and isinstance(
            player.search, GumbelConfig
        )
        self._seeds = np.random.default_rng(seed)
        self._speed = 0.0  # simulations per second, of the last search

    def compile(self) -> None:
        """Compiles the search, and measures its speed in a short one."""
        self._slices.compile(1)
        self._search(self._state, Clock(Limits()), 2 * self._slices.per_slice)
        self._search(self._state, Clock(Limits()), 2 * self._slices.per_slice)

    def search(
        self,
        state: State,
        clock: Clock,
        simulations: int,
        report: Callable[[Progress], object],
        allowed: np.ndarray | None = None,
    ) -> MoveDecision:
        """Returns the best move found within the limits.

        Args:
            state: the position; not terminated.
            clock: the limits.
            simulations: most simulations, up to those of the player.
            report: called after each slice.
            allowed: `[A]` bool, True for the moves to choose from; None: all.
        """
        limits = clock.limits
        total = min(simulations, limits.nodes or simulations)
        if self._needs_total and limits.seconds is not None and not clock.is_waiting:
            total = min(total, max(1, int(self._speed * limits.seconds)))
        return self._search(self._game.at(state, allowed), clock, total, report)

    def _search(
        self,
        state: RestrictedState,
        clock: Clock,
        total: int,
        report: Callable[[Progress], object] = lambda progress: None,
    ) -> MoveDecision:
        states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
        trees, made, begin = self._slices.empty_trees(1), 0, time.monotonic()
        while True:
            slice_begin = time.monotonic()
            batch = Batch(
                states, np.array([total], np.int32), np.array([made], np.int32)
            )
            seed = int(self._seeds.integers(2**32))
            (decision,), trees = self._slices.search(seed, batch, trees)
            made = min(total, made + self._slices.per_slice)
            report(Progress(decision, max(1, made), clock.seconds))
            now = time.monotonic()
            if made >= total or clock.is_over(_depth(decision), now - slice_begin):
                self._speed = made / max(now - begin, 1e-6)
                return decision


def _depth(decision: MoveDecision) -> int:
    """Returns the length of the principal variation."""
    if decision.analysis is None:
        return 1
    return int((decision.analysis.line >= 0).sum())
