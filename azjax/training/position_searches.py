"""Searches of stored positions, with results in the form in which self-play stores
them."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azjax.data import Rows, unpack_states
from azjax.data.rows import check_values
from azjax.devices import spread
from azjax.games import State
from azjax.players import AlphaZeroPlayer
from azjax.players.batches import batch_layout
from azjax.training.config import ReplayConfig
from azjax.training.stored_policy import (
    StoredPolicy,
    listed_entries,
    store_policy,
    store_values,
)


class SearchTargets(NamedTuple):
    """Search results of B positions, in the form in which self-play stores them.

    policy: leaves `[B, ...]`; the improved policy.
    policy_values: `[B, ...]` float16; see `store_values`.
    value: `[B]` float32; the search's value for the player to move.
    draw_probability: `[B]` float32; the network's.
    regret: `[B]` float32; how much lower the search values the played move than its
        best move, at least 0. A move without visits has the value of the position.
    """

    policy: StoredPolicy
    policy_values: jax.Array
    value: jax.Array
    draw_probability: jax.Array
    regret: jax.Array


def batches(num_positions: int, batch_size: int) -> Iterator[np.ndarray]:
    """Yields `[batch_size]` rows at a time; the last row is repeated at the end."""
    for start in range(0, num_positions, batch_size):
        yield np.arange(start, start + batch_size).clip(max=num_positions - 1)


def take(tree: Any, rows: np.ndarray) -> Any:
    """Returns the given rows of all leaves."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)


class PositionSearches:
    """Searches positions in batches of one size, so that one program serves all.

    player: searches with `player.simulations` simulations.
    batch_size: positions in a batch; the last one is padded.
    seed: from which all keys are made.
    """

    def __init__(self, player: AlphaZeroPlayer, batch_size: int, seed: int):
        self._layout = batch_layout(batch_size, [player])
        self._copies = self._layout.replicated(player)
        self.player, self.seed = player, seed

    def search_rows(
        self,
        number: int,
        rows: Rows,
        report: Callable[[int], None] = lambda count: None,
    ) -> Rows:
        """Returns rows with new targets.

        Args:
            number: of the file, from which the keys are made.
            rows: N positions.
            report: called between batches with the number of positions searched.

        Raises:
            ValueError: the search gives values that rows cannot hold.
        """
        game, count = self.player.game, len(rows.game)
        states, action = unpack_states(game, rows.state), rows.move.astype(np.int32)
        rng_key = jax.random.fold_in(jax.random.key(self.seed), number)
        found = []
        for index, batch in enumerate(batches(count, self._layout.size)):
            if index:
                report(index * self._layout.size)
            keys = self._layout.keys(jax.random.fold_in(rng_key, index))
            inputs = self._layout.by_position(take((states, action), batch))
            targets = _search(self._layout.mesh, self._copies, keys, *inputs)
            found.append(self._layout.to_host(targets))
        targets = jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *found)
        entries = listed_entries(targets.policy, targets.policy_values)
        made = rows._replace(
            policy_counts=entries.counts,
            policy_actions=entries.actions,
            policy_probabilities=entries.probabilities,
            policy_values=entries.values,
            value=targets.value,
            draw_probability=targets.draw_probability,
            regret=targets.regret,
            simulations=np.full(count, self.player.simulations, np.int32),
        )
        try:
            check_values(made, game)
        except ValueError as error:
            raise ValueError(f"the player's search: {error}") from None
        return made


@functools.partial(jax.jit, static_argnums=0)
def _search(mesh: Mesh | None, player: AlphaZeroPlayer, *batch: Any) -> SearchTargets:
    """Takes the keys, positions and actions as `batch`."""
    return spread(search_targets, mesh, num_replicated=1)(player, *batch)


def search_targets(
    player: AlphaZeroPlayer, rng_key: jax.Array, states: State, action: jax.Array
) -> SearchTargets:
    """Searches B positions, without exploration and from empty trees.

    Args:
        player: which searches.
        rng_key: consumed; one key, or `[P]` for P equal parts of the batch.
        states: the positions, leaves `[B, ...]`, none of them terminated.
        action: `[B]` int32; the moves that were played.

    Raises:
        ValueError: the player gives no probability of a draw.
    """
    choice, analysis, _ = player.analyze(rng_key, states, None)
    if choice.draw is None:
        raise ValueError("the player gives no probability of a draw")
    is_visited = analysis.visits > 0
    qvalues = jnp.where(is_visited, analysis.action_values, choice.value[:, None])
    best, played = (
        jnp.take_along_axis(qvalues, move[:, None], axis=1)[:, 0]
        for move in (choice.action, action)
    )
    policy, _ = store_policy(choice.policy, ReplayConfig.policy_entries)
    return SearchTargets(
        policy=policy,
        policy_values=store_values(policy, qvalues, is_visited),
        value=choice.value,
        draw_probability=choice.draw,
        regret=jnp.maximum(best - played, 0),
    )
