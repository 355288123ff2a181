"""Compares searches of a solved game with perfect play.

All search the same positions with the rules and random playouts, one a simulation, and
without a network or noise. The win probability that their moves lose and the error of
the chosen move's value are measured, and the seconds in turns. In games with chance
mctx's Stochastic MuZero is compared as well.

    python experiments/bench/perfect_play.py ur:2
"""

import dataclasses
import statistics
from collections.abc import Callable

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import tyro
from harness import make_table, show, time_in_turns

from azjax import games, search
from azjax.arena import shipped
from azjax.games import Game, State
from azjax.games.chance import after_chance, after_outcome, outcome_probabilities
from azjax.players.model import (
    action_of,
    is_illegal,
    make_root,
    mover_reward,
    turn_discount,
)
from azjax.players.search_players import make_playout_fn, playout_results

LOWEST = jnp.finfo(jnp.float32).min


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    game: a game of which positions are solved.
    positions: number of positions, which are searched at once.
    simulations: of each search.
    repeats: searches of each kind; the median time is reported.
    mctx: whether to compare mctx, whose search compiles for minutes.
    json: print JSON instead of the table.
    """

    game: tyro.conf.Positional[str] = "ur:2"
    positions: int = 128
    simulations: tuple[int, ...] = (16, 64, 256, 1024)
    repeats: int = 3
    mctx: bool = True
    json: bool = False


def measure(settings: Settings) -> list[dict]:
    """Returns the measurements of all searches."""
    game = games.make(settings.game)
    solved = shipped(game)
    if solved is None:
        raise SystemExit(f"{game!r} is not solved")
    solved = solved.subset(settings.positions)
    states, rows = solved.states, np.arange(len(solved))
    best = np.nanmax(solved.action_values, axis=1)
    results = []
    for simulations in settings.simulations:
        runs = {
            "PUCT": by_azjax(game, search.AlphaZeroConfig(), simulations),
            "Gumbel": by_azjax(game, search.GumbelConfig(), simulations),
        }
        if game.num_outcomes and settings.mctx:
            runs["mctx"] = by_mctx(game, simulations)
        times = time_in_turns(
            {
                name: lambda run=run: jax.block_until_ready(run(states))
                for name, run in runs.items()
            },
            settings.repeats,
        )
        for name, run in runs.items():
            action, value = map(np.asarray, run(states))
            exact = solved.action_values[rows, action]
            results.append(
                {
                    "simulations": simulations,
                    "search": name,
                    "lost": float((best - exact).mean() / 2),
                    "error": float(np.abs(value - exact).mean() / 2),
                    "seconds": statistics.median(times[name]),
                    "device": jax.devices()[0].device_kind,
                }
            )
    return results


def even(game: Game, states: State) -> tuple[jax.Array, jax.Array]:
    """Returns even logits of the legal actions, and results that say nothing."""
    legal = jax.vmap(game.legal_action_mask)(states)
    logits = jnp.where(legal, 0.0, LOWEST)
    return logits, jnp.full((len(legal), 3), 1 / 3)


def by_azjax(game: Game, config: search.SearchConfig, simulations: int) -> Callable:
    """Returns a compiled `states` to `[B]` actions and their values."""
    model = make_playout_fn(game)

    @jax.jit
    def run(states: State):
        root = make_root(game, *even(game, states), states)
        output = config.policy(explores=False)(
            None,
            jax.random.key(0),
            root,
            model,
            simulations,
            invalid_actions=is_illegal(jnp.asarray(root.prior_logits)),
            max_depth=game.max_moves,
        )
        edge, value = chosen(output)
        return action_of(root.embedding, edge), value

    return run


def by_mctx(game: Game, simulations: int) -> Callable:
    """Returns a compiled `states` to `[B]` actions and their values."""

    def move(params, rng_key, action, states):
        del params
        draw_key, playout_key = jax.random.split(rng_key)
        after = jax.vmap(game.step)(states, action)
        probabilities = outcome_probabilities(game, after)
        # A position that does not wait has one outcome, which changes nothing.
        first = jnp.arange(game.num_outcomes) == 0
        waits = probabilities.any(axis=-1, keepdims=True)
        probabilities = jnp.where(waits, probabilities, first)
        drawn, _ = after_chance(game, draw_key, after)
        result = playout_results(game, playout_key, drawn)
        discount = turn_discount(game, states, drawn)
        fields = {
            "chance_logits": jnp.log(jnp.maximum(probabilities, 1e-30)),
            "afterstate_value": mover_reward(game, states, drawn) + discount * result,
        }
        return mctx.DecisionRecurrentFnOutput(**fields), (states, after)

    def chance(params, rng_key, outcome, both):
        del params
        states, after = both
        waits = outcome_probabilities(game, after).any(axis=-1)
        after = after_outcome(game, after, jnp.where(waits, outcome, -1))
        result = playout_results(game, rng_key, after)
        fields = {
            "action_logits": even(game, after)[0],
            "value": jnp.where(after.terminated, 0.0, result),
            "reward": mover_reward(game, states, after),
            "discount": turn_discount(game, states, after),
        }
        return mctx.ChanceRecurrentFnOutput(**fields), after

    @jax.jit
    def run(states: State):
        logits, _ = even(game, states)
        fields = {
            "prior_logits": logits,
            "value": jnp.zeros(len(logits)),
            "embedding": states,
        }
        output = mctx.stochastic_muzero_policy(
            (),
            jax.random.key(0),
            mctx.RootFnOutput(**fields),
            move,
            chance,
            simulations,
            invalid_actions=logits == LOWEST,
            dirichlet_fraction=0.0,
            temperature=0.0,
        )
        return chosen(output)

    return run


def chosen(output: search.PolicyOutput) -> tuple[jax.Array, jax.Array]:
    """Returns `[B]` actions and their values."""
    qvalues = output.search_tree.summary().qvalues
    return output.action, qvalues[jnp.arange(len(qvalues)), output.action]


def main(settings: Settings) -> None:
    """Measures and prints."""
    results = measure(settings)
    columns = {
        "simulations": "{simulations:,}",
        "search": "{search}",
        "win probability lost": "{lost:.2%}",
        "error of the value": "{error:.2%}",
        "seconds": "{seconds:.3f}",
    }
    title = f"{settings.positions} positions of {settings.game}, on " + str(
        results[0]["device"]
    )
    table = make_table(results, columns, title, section="simulations")
    show(results, table, as_json=settings.json)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
