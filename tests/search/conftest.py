"""Searches of real games with a model that compiles quickly, instead of a network."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games
from azjax.games import Game
from azjax.players.model import mover_reward
from azjax.search import SearchConfig


class Searching(NamedTuple):
    """Searches of one game; all tests share the compiled functions.

    `sharpness` scales the model's outputs. With 0 all legal moves are equally likely
    and all values are 0; larger numbers give arbitrary, fixed logits and values.
    """

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

    def root(self, sharpness, states) -> mctx.RootFnOutput:
        logits, value = self.predict(sharpness, states)
        fields = {"prior_logits": logits, "value": value, "embedding": states}
        return mctx.RootFnOutput(**fields)

    def predict(self, sharpness, states):
        seen = jax.vmap(self.game.observe)(states)
        seen = seen.reshape(seen.shape[0], -1)
        size = (seen.shape[1], self.game.num_actions + 1)
        weights = np.random.default_rng(0).normal(size=size).astype(np.float32)
        # Sums in a fixed order, for every batch size.
        drawn = jnp.sin((seen[:, :, None] * weights).sum(axis=1)) * sharpness
        legal = jax.vmap(self.game.legal_action_mask)(states)
        logits = jnp.where(legal, 2 * drawn[:, 1:], jnp.finfo(jnp.float32).min)
        return logits, jnp.clip(drawn[:, 0], -0.9, 0.9)

    def model(self, sharpness, rng_key, action, states):
        del rng_key
        after = jax.vmap(self.game.step)(states, action)
        logits, value = self.predict(sharpness, after)
        fields = {
            "reward": mover_reward(self.game, states, after),
            "discount": jnp.where(after.terminated, 0.0, -1.0),
            "prior_logits": logits,
            "value": jnp.where(after.terminated, 0.0, value),
        }
        return mctx.RecurrentFnOutput(**fields), after

    def compiled(self, config: SearchConfig, num_simulations: int, *, explores=False):
        """Returns a compiled `(sharpness, rng_key, states, tree) -> PolicyOutput`."""
        return _compiled(self.game, config, num_simulations, explores)

    def search(self, config, num_simulations, states, *, tree=None, sharpness=0.0):
        """Searches and returns NumPy arrays."""
        run = self.compiled(config, num_simulations)
        return jax.device_get(run(sharpness, jax.random.key(0), states, tree))


@functools.cache
def _step(game):
    return jax.jit(game.step)


@functools.cache
def _compiled(game, config, num_simulations, explores):
    searching = Searching(game)

    def run(sharpness, rng_key, states, tree=None):
        return config.policy(explores=explores)(
            sharpness,
            rng_key,
            searching.root(sharpness, states),
            searching.model,
            num_simulations,
            invalid_actions=~jax.vmap(game.legal_action_mask)(states),
            max_depth=game.max_moves,
            tree=tree,
        )

    return jax.jit(run)


@pytest.fixture(scope="session")
def tic_tac_toe() -> Searching:
    return Searching(games.make("tic_tac_toe"))


@pytest.fixture(scope="session")
def connect_four() -> Searching:
    return Searching(games.make("connect_four"))
