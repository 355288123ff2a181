"""Searches of real games with a model that compiles quickly, instead of a network."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games
from azjax.devices import target_platform, tracing_for
from azjax.games import Game
from azjax.players.model import mover_reward
from azjax.search import empty_tree


class Outputs(NamedTuple):
    """The outputs of the model.

    sharpness: scale of arbitrary, fixed logits and values; with 0, all legal moves are
        equally likely and all values are 0.
    logits: `[A]`, added to the logits.
    value: added to the value.
    """

    sharpness: Any = 0.0
    logits: Any = 0.0
    value: Any = 0.0


class Searching(NamedTuple):
    """Searches of one game; all tests share the compiled functions."""

    game: Game

    def positions(self, *lines: str):
        """Returns the positions after lines of moves, separated by spaces."""
        step = _step(self.game)
        found = []
        for line in lines:
            state = self.game.init()
            for move in line.split():
                state = step(state, self.game.text_to_action(state, move))
            assert not state.terminated
            found.append(state)
        return jax.tree.map(lambda *leaves: np.stack(leaves), *found)

    def outputs(self, **outputs):
        return Outputs(**outputs)

    def legal(self, states):
        return jax.vmap(self.game.legal_action_mask)(states)

    def root(self, outputs: Outputs, states) -> mctx.RootFnOutput:
        logits, value = self.predict(outputs, states)
        fields = {"prior_logits": logits, "value": value, "embedding": states}
        return mctx.RootFnOutput(**fields)

    def predict(self, outputs, states):
        seen = jax.vmap(self.game.observe)(states)
        seen = seen.reshape(seen.shape[0], -1)
        size = (seen.shape[1], self.game.num_actions + 1)
        weights = np.random.default_rng(0).normal(size=size).astype(np.float32)
        # Sums in a fixed order, for every batch size.
        drawn = jnp.sin((seen[:, :, None] * weights).sum(axis=1)) * outputs.sharpness
        logits = 2 * drawn[:, 1:] + outputs.logits
        logits = jnp.where(self.legal(states), logits, jnp.finfo(jnp.float32).min)
        return logits, jnp.clip(drawn[:, 0] + outputs.value, -0.9, 0.9)

    def model(self, outputs, rng_key, action, states):
        del rng_key
        after = jax.vmap(self.game.step)(states, action)
        logits, value = self.predict(outputs, after)
        fields = {
            "reward": mover_reward(self.game, states, after),
            "discount": jnp.where(after.terminated, 0.0, -1.0),
            "prior_logits": logits,
            "value": jnp.where(after.terminated, 0.0, value),
        }
        return mctx.RecurrentFnOutput(**fields), after

    def call(self, policy, outputs, rng_key, states, num_simulations, **settings):
        """Searches with a policy of azjax."""
        return policy(
            outputs,
            rng_key,
            self.root(outputs, states),
            self.model,
            num_simulations,
            invalid_actions=~self.legal(states),
            max_depth=self.game.max_moves,
            **settings,
        )

    def compiled(self, config, num_simulations, *, explores=False, platform=None):
        """Returns a compiled `(outputs, rng_key, states, tree) -> PolicyOutput`.

        It is traced for another platform if one is given: all but "cpu" pack tables.
        """
        platform = platform or target_platform()
        return _compiled(self.game, config, num_simulations, explores, platform)

    def search(
        self, config, num_simulations, states, *, tree=None, rng_key=None, **settings
    ):
        """Searches and returns NumPy arrays.

        `settings` are those of `compiled`, or fields of `Outputs`.
        """
        names = settings.keys() & set(Outputs._fields)
        outputs = Outputs(**{name: settings.pop(name) for name in names})
        run = self.compiled(config, num_simulations, **settings)
        rng_key = jax.random.key(0) if rng_key is None else rng_key
        return jax.device_get(run(outputs, rng_key, states, tree))

    def empty_tree(self, states, num_nodes, *, use_solver=False):
        return _empty_tree(states, self.game.num_actions, num_nodes, use_solver)


@functools.cache
def _step(game):
    return jax.jit(game.step)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _empty_tree(states, num_actions, num_nodes, use_solver):
    return empty_tree(states, num_actions, num_nodes, use_solver=use_solver)


@functools.cache
def _compiled(game, config, num_simulations, explores, platform):
    policy = config.policy(explores=explores)

    def run(outputs, rng_key, states, tree=None):
        with tracing_for(platform):
            return Searching(game).call(
                policy, outputs, rng_key, states, num_simulations, tree=tree
            )

    return jax.jit(run)


@pytest.fixture(scope="session")
def tic_tac_toe() -> Searching:
    return Searching(games.make("tic_tac_toe"))


@pytest.fixture(scope="session")
def connect_four() -> Searching:
    return Searching(games.make("connect_four"))
