"""Measures random play of azjax and pgx, in steps per second over all games.

There are two measurements for each game. In both, state, legal actions and observation
of each new position are written to memory, as a network would need them.

Rules alone: both libraries select actions with the same cheap method. For each game, 32
bits from a linear congruential generator select legal action number
`bits // 2**16 * count // 2**16`; a finished game is replaced by an initial position
that is computed once.

As documented: each library plays at random with its own automatic reset, as its
documentation recommends: azjax by `VectorEnv` and `random_action`, pgx by `auto_reset`
and `jax.random.categorical` over the legal actions.

    python experiments/bench/games.py --games connect_four chess
"""

import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import rich.table
import tyro
from harness import make_table, show, time_in_turns
from pgx.experimental import auto_reset

from azjax import games
from azjax.games.core import select


class Case(NamedTuple):
    """A game that both libraries implement.

    azjax: game spec for `azjax.games.make`.
    pgx: game id for `pgx.make`.
    batch_size: parallel games.
    num_steps: steps of each game in a run.
    """

    azjax: str
    pgx: str
    batch_size: int = 1024
    num_steps: int = 200


CASES = {
    "tic_tac_toe": Case("tic_tac_toe", "tic_tac_toe", num_steps=500),
    "connect_four": Case("connect_four", "connect_four", num_steps=500),
    "othello": Case("othello", "othello"),
    "hex": Case("hex:swap=true", "hex"),
    "go_9x9": Case("go", "go_9x9", num_steps=50),
    "go_19x19": Case("go:19", "go_19x19", batch_size=64, num_steps=50),
    "chess": Case("chess", "chess", batch_size=64, num_steps=50),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    games: the games to measure; all common games by default.
    batch_size: parallel games, instead of the default 1,024 (64 for the large games).
    num_steps: steps of each game in a run, instead of the default 50 to 500.
    repeats: interleaved runs of each library; the median is reported.
    json: print JSON instead of the table.
    """

    games: tuple[Literal[tuple(CASES)], ...] = tuple(CASES)  # pyright: ignore
    batch_size: int | None = None
    num_steps: int | None = None
    repeats: int = 7
    json: bool = False

    def __post_init__(self) -> None:
        """Checks the values."""
        for name in "batch_size", "num_steps", "repeats":
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be >= 1: {value}")

    def case(self, name: str) -> Case:
        """Returns a game with the sizes of the options."""
        case = CASES[name]
        return case._replace(
            batch_size=self.batch_size or case.batch_size,
            num_steps=self.num_steps or case.num_steps,
        )


class Position(NamedTuple):
    """The network's inputs, and the state."""

    state: games.State
    legal_action_mask: jax.Array
    observation: jax.Array


class Play(NamedTuple):
    """Play of a single game by one library; positions have a `legal_action_mask`.

    reset: `() -> position`.
    step: `(position, action) -> position`; returns the initial position after an end.
    """

    reset: Callable
    step: Callable


def azjax_play(spec: str) -> Play:
    """Returns play with azjax."""
    game = games.make(spec)

    def look(state):
        return Position(state, game.legal_action_mask(state), game.observe(state))

    def step(position, action):
        state = game.step(position.state, action)
        return look(select(state.terminated, game.init(), state))

    return Play(lambda: look(game.init()), step)


def pgx_play(env_id: str) -> Play:
    """Returns play with pgx."""
    env = pgx.make(env_id)  # pyright: ignore[reportArgumentType]
    # Computed once: the measurement excludes the start of a game.
    first = jax.jit(env.init)(jax.random.key(0))

    def step(state, action):
        state = env.step(state, action)
        return select(jnp.logical_or(state.terminated, state.truncated), first, state)

    return Play(lambda: first, step)


def cheap_sample(bits: jax.Array, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the next `[]` uint32 bits and the legal action that they select."""
    bits = bits * jnp.uint32(1664525) + jnp.uint32(1013904223)
    legal = legal.astype(jnp.uint32)
    rank = (bits >> 16) * legal.sum() >> 16
    num_actions = legal.shape[0]
    if num_actions < 32:
        return bits, _place(legal, rank)[0]
    # With many actions, first selects the block, then the action in it.
    size = math.isqrt(num_actions - 1) + 1
    blocks = jnp.pad(legal, (0, -num_actions % size)).reshape(-1, size)
    block, rank = _place(blocks.sum(axis=1), rank)
    place, _ = _place(blocks[block], rank)
    return bits, block * size + place


def _place(count: jax.Array, rank: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the bin that contains item number `rank`, and its index in the bin."""
    # Unrolled: XLA fuses this with the rules, but not a cumulative sum.
    sums = list(itertools.accumulate(count))
    place, before = jnp.int32(0), jnp.uint32(0)
    for total in sums:
        place += total <= rank
        before = jnp.where(total <= rank, total, before)
    return place, rank - before


def make_runner(start: Callable, step: Callable, inputs: Any) -> Callable[[], Any]:
    """Returns a compiled function without arguments that plays and waits.

    Args:
        start: `() -> carry`.
        step: `(carry, input) -> carry`.
        inputs: `[T, ...]`, one for each step, or only T.
    """
    length = inputs if isinstance(inputs, int) else None
    inputs = None if length else inputs

    def run(inputs):
        def play(carry, one):
            return step(carry, one), None

        return jax.lax.scan(play, start(), inputs, length)[0]

    compiled = jax.jit(run).lower(inputs).compile()
    return lambda: jax.block_until_ready(compiled(inputs))


def make_rules_runner(play: Play, case: Case) -> Callable[[], Any]:
    """Returns a runner that measures almost only the rules."""
    bits = jax.random.bits(jax.random.key(0), (case.batch_size,))

    def step(carry, _):
        def step_one(position, bits):
            bits, action = cheap_sample(bits, position.legal_action_mask)
            return play.step(position, action), bits

        return jax.vmap(step_one)(*carry)

    def start():
        return jax.vmap(lambda _: play.reset())(bits), bits

    return make_runner(start, step, case.num_steps)


def make_azjax_runner(case: Case) -> Callable[[], Any]:
    """Returns a runner that plays as azjax's documentation recommends."""
    env = games.VectorEnv(games.make(case.azjax), case.batch_size)

    def step(carry, rng_key):
        env_state, time_step = carry
        action = games.random_action(rng_key, time_step.legal_action_mask)
        env_state, time_step = env.step(env_state, action)
        # The previous move is not needed.
        return env_state, time_step._replace(next_state=None)

    def start():
        env_state, time_step = env.reset(jax.random.key(0))
        return env_state, time_step._replace(next_state=None)

    keys = jax.random.split(jax.random.key(1), case.num_steps)
    return make_runner(start, step, keys)


def make_pgx_runner(case: Case) -> Callable[[], Any]:
    """Returns a runner that plays as pgx's documentation recommends."""
    env = pgx.make(case.pgx)  # pyright: ignore[reportArgumentType]
    step_all = jax.vmap(auto_reset(env.step, env.init))

    def step(state, rng_key):
        action_key, step_key = jax.random.split(rng_key)
        logits = jnp.log(state.legal_action_mask.astype(jnp.float32))
        action = jax.random.categorical(action_key, logits, axis=1)
        return step_all(state, action, jax.random.split(step_key, case.batch_size))

    def start():
        keys = jax.random.split(jax.random.key(0), case.batch_size)
        return jax.vmap(env.init)(keys)

    keys = jax.random.split(jax.random.key(1), case.num_steps)
    return make_runner(start, step, keys)


def measure(name: str, case: Case, repeats: int) -> dict:
    """Returns the measurements of one game, by name."""
    libraries = {"azjax": azjax_play(case.azjax), "pgx": pgx_play(case.pgx)}
    result: dict = {"game": name, "batch_size": case.batch_size}
    for library, play in libraries.items():
        result[f"{library}_state_bytes"] = state_bytes(play)
        result[f"{library}_compile_seconds"] = compile_seconds(play, case.batch_size)
    for kind, runs in (
        ("rules", {lib: make_rules_runner(libraries[lib], case) for lib in libraries}),
        (
            "documented",
            {"azjax": make_azjax_runner(case), "pgx": make_pgx_runner(case)},
        ),
    ):
        times = time_in_turns(runs, repeats)
        seconds = {library: statistics.median(times[library]) for library in libraries}
        steps = case.batch_size * case.num_steps
        for library in libraries:
            result[f"{library}_{kind}_steps_per_second"] = steps / seconds[library]
        result[f"{kind}_ratio"] = seconds["pgx"] / seconds["azjax"]
    return result


def state_bytes(play: Play) -> int:
    """Returns the bytes that a search stores per position."""
    position = jax.eval_shape(play.reset)
    state = position.state if isinstance(position, Position) else position
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def compile_seconds(play: Play, batch_size: int) -> float:
    """Returns the seconds to trace and compile one step of all games."""
    reset = jax.vmap(lambda _: play.reset())
    positions = jax.eval_shape(reset, np.arange(batch_size))
    actions = jax.ShapeDtypeStruct((batch_size,), jnp.int32)
    start = time.perf_counter()
    jax.jit(jax.vmap(play.step)).lower(positions, actions).compile()
    return time.perf_counter() - start


def make_games_table(results: list[dict]) -> rich.table.Table:
    """Returns the measurements as a table, with a row for each game and measurement."""
    rows = []
    for result in results:
        name = f"{result['game']}, {result['batch_size']:,} at once"
        for what, words, is_speed in (
            ("rules_steps_per_second", "million steps/s, the rules alone", True),
            ("documented_steps_per_second", "million steps/s, as documented", True),
            ("compile_seconds", "seconds to compile a step", False),
            ("state_bytes", "bytes a state", False),
        ):
            ours, theirs = result[f"azjax_{what}"], result[f"pgx_{what}"]
            unit, ratio = (1e6, ours / theirs) if is_speed else (1, theirs / ours)
            rows.append((name, words, ours / unit, theirs / unit, ratio))
            name = ""
    names = ("game", "measured", "azjax", "pgx", "ratio")
    return make_table(
        [dict(zip(names, row, strict=True)) for row in rows],
        {
            "game": "{game}",
            "measured": "{measured}",
            "azjax": "{azjax:.3g}",
            "pgx": "{pgx:.3g}",
            "": "{ratio:.1f} times",
        },
        f"random play on {jax.devices()[0].platform}",
    )


def main(settings: Settings) -> None:
    """Measures and prints."""
    results = [
        measure(name, settings.case(name), settings.repeats) for name in settings.games
    ]
    show(results, make_games_table(results), as_json=settings.json)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
