"""Measures tree search of azjax and mctx with a trivial network.

Every subject searches the same Connect Four positions, four random moves from the empty
board, with the same trivial network: a fixed random linear map from the observation to
prior logits, flat or sharp, and the tanh of another to the value. The subjects:

    azjax       azjax's policies on azjax's Connect Four
    mctx+azjax  mctx's policies with azjax's `search`, on azjax's Connect Four
    mctx        mctx's policies on azjax's Connect Four
    mctx+pgx    mctx's policies on pgx's Connect Four, as in pgx's example

On an NVIDIA GPU each runs as usual and with its loops as CUDA graphs, as azjax's own
programs do. Each returns the action and the root's summary. `max_depth` is the longest
game, because mctx would otherwise search beyond the ends of games and take longer. The
subjects run in turns, and the medians are reported. Before that, their visit counts are
compared: they must be equal where the algorithms are; on an accelerator, where programs
round differently, in 99% of the games. mctx breaks PUCT's ties at random and azjax by
action number, so that some of the games may differ there.

    python experiments/bench/search.py --plot search.png
"""

import dataclasses
import os
import pathlib
import statistics
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args
from unittest import mock

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx
import rich.table
import tyro
from harness import make_table, show, time_in_turns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from mctx._src import policies as mctx_policies

from azjax import games
from azjax.arena.chart import GRID, INK, PALE_INK
from azjax.devices import network_compiler_options
from azjax.players.model import mover_reward
from azjax.search import alphazero_policy, gumbel_policy, search

Algorithm = Literal["gumbel", "puct"]
Prior = Literal["flat", "sharp"]
Name = Literal["azjax", "mctx+azjax", "mctx", "mctx+pgx"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    batch: numbers of parallel games.
    simulations: numbers of simulations of a search.
    algorithms: Gumbel search, PUCT or both.
    priors: priors of the trivial network.
    subjects: what searches; mctx is among them.
    repeats: interleaved runs of each subject; the median is reported.
    quick: only check that everything runs, with few games, simulations and repeats.
    json: print JSON instead of the tables.
    plot: file for a plot of the times, PNG or SVG.
    """

    batch: tuple[int, ...] = (64,)
    simulations: tuple[int, ...] = (16, 32, 64, 128, 512)
    algorithms: tuple[Algorithm, ...] = ("gumbel", "puct")
    priors: tuple[Prior, ...] = ("flat", "sharp")
    subjects: tuple[Name, ...] = get_args(Name)
    repeats: int = 7
    quick: bool = False
    json: bool = False
    plot: pathlib.Path | None = None

    def __post_init__(self) -> None:
        """Checks the subjects."""
        needed = {"mctx", "azjax"} if self.plot else {"mctx"}
        if missing := needed - set(self.subjects):
            raise ValueError(f"subjects must include {', '.join(sorted(missing))}")


GAME = games.make("connect_four")
NUM_RANDOM_MOVES = 4
SHARPNESS = {"flat": 0.1, "sharp": 3.0}
TITLES = {"gumbel": "Gumbel", "puct": "PUCT"}
# Label, color and style of each line, in drawing order. The last two often overlap,
# hence the dashes. The colors are from the palette of Okabe and Ito, which color-blind
# people can distinguish.
LINES = {
    "azjax": ("azjax", "#0072b2", "-"),
    "mctx+azjax": ("mctx with azjax's search", "#009e73", "-"),
    "mctx": ("mctx", "#d55e00", "-"),
    "mctx+pgx": ("mctx on pgx's game", "#56380f", (0, (1.5, 2))),
}
GRAPHS = "CUDA graphs"
# A GPU launches single kernels in the first run, makes a graph in the second and may
# change it in the third.
NUM_WARM_UPS = 3
# Growth is measured from this number of simulations.
GROWTH_FROM = 64


class TrivialNetwork(NamedTuple):
    """The parameters of the trivial network.

    prior: `[84, 7]`, before the sharpness.
    value: `[84]`, before the tanh.
    sharpness: `[]` float32.
    """

    prior: jax.Array
    value: jax.Array
    sharpness: jax.Array


class Rules(NamedTuple):
    """Connect Four by one library, batched.

    start: maps `[B, 4]` actions to the states after them.
    step: maps `(states, action)` to states.
    observe: maps states to `[B, 6, 7, 2]` observations.
    legal_action_mask: maps states to `[B, 7]` bool.
    mover_reward: maps `(before, after)` to `[B]` rewards of the player who moved.
    """

    start: Callable
    step: Callable
    observe: Callable
    legal_action_mask: Callable
    mover_reward: Callable


class Subject(NamedTuple):
    """A search implementation with its rules.

    policies: for each algorithm, a policy with the arguments of mctx's.
    rules: the game.
    """

    policies: dict[str, Callable]
    rules: Rules


def azjax_rules() -> Rules:
    """Returns azjax's Connect Four."""
    step = jax.vmap(GAME.step)

    def start(actions):
        states = jax.vmap(lambda _: GAME.init())(actions)
        for action in actions.T:
            states = step(states, action)
        return states

    return Rules(
        start=start,
        step=step,
        observe=jax.vmap(GAME.observe),
        legal_action_mask=jax.vmap(GAME.legal_action_mask),
        mover_reward=lambda before, after: mover_reward(GAME, before, after),
    )


def pgx_rules() -> Rules:
    """Returns pgx's Connect Four, whose states hold observation, mask and rewards."""
    env = pgx.make("connect_four")
    step = jax.vmap(env.step)

    def start(actions):
        states = jax.vmap(lambda _: env.init(jax.random.key(0)))(actions)
        for action in actions.T:
            states = step(states, action)
        return states

    def reward(before, after):
        return after.rewards[jnp.arange(len(after.rewards)), before.current_player]

    return Rules(
        start=start,
        step=step,
        observe=lambda states: states.observation,
        legal_action_mask=lambda states: states.legal_action_mask,
        mover_reward=reward,
    )


def swap_search(policy: Callable) -> Callable:
    """Returns one of mctx's policies with azjax's search instead of mctx's."""

    def swapped(*args, **kwargs):
        with mock.patch.object(mctx_policies.search, "search", search):
            return policy(*args, **kwargs)

    return swapped


def mctx_puct(*args, **kwargs) -> mctx.PolicyOutput:
    """Searches by mctx's PUCT with AlphaZero's range of values, [-1, 1]."""

    def qtransform(tree, node_index):
        return mctx.qtransform_by_min_max(tree, node_index, min_value=-1, max_value=1)

    return mctx.muzero_policy(*args, qtransform=qtransform, **kwargs)


def make_subjects() -> dict[str, Subject]:
    """Returns the subjects in the order of their turns."""
    ours = {"gumbel": gumbel_policy, "puct": alphazero_policy}
    theirs = {"gumbel": mctx.gumbel_muzero_policy, "puct": mctx_puct}
    swapped = {name: swap_search(policy) for name, policy in theirs.items()}
    return {
        "azjax": Subject(ours, azjax_rules()),
        "mctx+azjax": Subject(swapped, azjax_rules()),
        "mctx": Subject(theirs, azjax_rules()),
        "mctx+pgx": Subject(theirs, pgx_rules()),
    }


def trivial_network(prior: Prior) -> TrivialNetwork:
    """Returns the trivial network with the sharpness of a prior.

    Its weights are multiples of 1/512 below 2, so that sums of them are exact in any
    order, also in TF32: programs do not differ by rounding.
    """
    size = int(np.prod(GAME.observation_shape))
    shape = (size, GAME.num_actions + 1)
    weights = np.random.default_rng(0).integers(-1024, 1024, shape) / 512
    return TrivialNetwork(
        prior=jnp.array(weights[:, :-1], jnp.float32),
        value=jnp.array(weights[:, -1] / 4, jnp.float32),
        sharpness=jnp.float32(SHARPNESS[prior]),
    )


def evaluate(
    rules: Rules, network: TrivialNetwork, states: Any
) -> tuple[jax.Array, jax.Array]:
    """Returns `[B, 7]` prior logits and `[B]` values.

    Illegal actions have the lowest logit. Values are for the player to move.
    """
    observation = rules.observe(states)
    stones = observation.reshape(len(observation), -1).astype(jnp.float32)
    logits = network.sharpness * (stones @ network.prior)
    legal = rules.legal_action_mask(states)
    logits = jnp.where(legal, logits, jnp.finfo(jnp.float32).min)
    return logits, jnp.tanh(stones @ network.value)


def make_search(subject: Subject, algorithm: Algorithm, simulations: int) -> Callable:
    """Returns a function `(network, rng_key, states) -> (action, root summary)`."""
    rules, policy = subject.rules, subject.policies[algorithm]

    def recurrent_fn(network, rng_key, action, states):
        del rng_key  # games and network are deterministic
        after = rules.step(states, action)
        logits, value = evaluate(rules, network, after)
        fields = {
            "reward": rules.mover_reward(states, after),
            "discount": jnp.where(after.terminated, 0.0, -1.0),
            "prior_logits": logits,
            "value": jnp.where(after.terminated, 0.0, value),
        }
        return mctx.RecurrentFnOutput(**fields), after

    def run(network, rng_key, states):
        logits, value = evaluate(rules, network, states)
        fields = {"prior_logits": logits, "value": value, "embedding": states}
        output = policy(
            network,
            rng_key,
            mctx.RootFnOutput(**fields),
            recurrent_fn,
            simulations,
            invalid_actions=~rules.legal_action_mask(states),
            max_depth=GAME.max_moves,
        )
        return output.action, output.search_tree.summary()

    return run


def random_moves(batch: int) -> jax.Array:
    """Returns `[B, 4]` random moves; four moves are always legal and end no game."""
    shape = (batch, NUM_RANDOM_MOVES)
    return jax.random.randint(jax.random.key(1), shape, 0, GAME.num_actions)


def measure(
    batch: int, algorithm: Algorithm, simulations: int, settings: Settings
) -> list[dict]:
    """Returns the measurements, one for each prior and subject."""
    rng_key = jax.random.key(0)
    subjects = make_subjects()
    subjects = {name: subjects[name] for name in settings.subjects}
    states = {
        name: jax.jit(subject.rules.start)(random_moves(batch))
        for name, subject in subjects.items()
    }
    options: dict[str, Any] = {"": None}
    if jax.default_backend() == "gpu" and network_compiler_options("gpu"):
        options[GRAPHS] = network_compiler_options("gpu")
    compiled = {
        (name, form): jax.jit(make_search(subject, algorithm, simulations))
        .lower(trivial_network("flat"), rng_key, states[name])
        .compile(options[form])
        for form in options
        for name, subject in subjects.items()
    }
    results = []
    for prior in settings.priors:
        network = trivial_network(prior)

        def run(key, network=network):
            return jax.block_until_ready(
                compiled[key](network, rng_key, states[key[0]])
            )

        found: dict[tuple[str, str], Any] = {}
        for _ in range(NUM_WARM_UPS):
            found = {key: run(key)[1].visit_counts for key in compiled}
        visits = {key: np.asarray(counts) for key, counts in found.items()}
        agreeing = {
            key: float((counts == visits["mctx", ""]).all(axis=1).mean())
            for key, counts in visits.items()
        }
        where = f"{batch} games, {simulations} simulations, {algorithm}, {prior} prior"
        check_agreement(agreeing, algorithm, where)
        seconds = time_in_turns(
            {key: lambda key=key: run(key) for key in compiled}, settings.repeats
        )
        results += [
            {
                "device": device_name(),
                "batch": batch,
                "algorithm": algorithm,
                "prior": prior,
                "simulations": simulations,
                "subject": ", ".join(filter(None, key)),
                "seconds": seconds[key],
                "milliseconds_per_simulation": 1e3
                * statistics.median(seconds[key])
                / simulations,
                "simulations_per_second": batch
                * simulations
                / statistics.median(seconds[key]),
                "times_as_fast_as_mctx": median_ratio(
                    seconds["mctx", key[1]], seconds[key]
                ),
                "agreeing_games": agreeing[key],
            }
            for key in compiled
        ]
    return results


def check_agreement(
    agreeing: dict[tuple[str, str], float], algorithm: Algorithm, where: str
) -> None:
    """Raises RuntimeError if visit counts differ where they must be equal."""
    # Gumbel search has no ties.
    same = ("azjax", "mctx+azjax") if algorithm == "gumbel" else ("mctx+azjax",)
    least = 1 if jax.default_backend() == "cpu" else 0.99
    for (name, form), share in agreeing.items():
        if name in same and share < least:
            raise RuntimeError(
                f"{name} visits the same root moves as mctx in only "
                f"{share:.1%} of the games: {where} {form}"
            )


def median_ratio(numerators: list[float], denominators: list[float]) -> float:
    """Returns the median of the ratios within each turn."""
    pairs = zip(numerators, denominators, strict=True)
    return statistics.median(first / second for first, second in pairs)


def device_name() -> str:
    """Returns a description of the device."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return device.device_kind
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.split(":")[1].strip() for line in lines if "model name" in line]
    cores = os.cpu_count()
    return f"{models[0] if models else 'CPU'}, {cores} core{'s' if cores != 1 else ''}"


def make_speed_table(results: list[dict]) -> rich.table.Table:
    """Returns the measurements of one setting, with a row for each subject and size."""
    columns = {
        "subject": "{subject}",
        "simulations": "{simulations:,}",
        "ms each": "{milliseconds_per_simulation:.3g}",
        "a second": "{simulations_per_second:,.0f}",
        "against mctx": "{times_as_fast_as_mctx:.2f} times",
        "same visits": "{agreeing_games:.0%}",
    }
    first = results[0]
    title = f"{setting_name(first)}, on {first['device']}"
    return make_table(results, columns, title, section="simulations")


def make_growth_table(results: list[dict]) -> rich.table.Table:
    """Returns the growth of a simulation's time with the number of simulations."""
    counts = sorted({result["simulations"] for result in results})
    low, high = GROWTH_FROM if GROWTH_FROM in counts else counts[0], counts[-1]
    subjects = list(dict.fromkeys(result["subject"] for result in results))
    table = rich.table.Table(
        "setting",
        *(rich.table.Column(name, justify="right") for name in subjects),
        title=f"Time of a simulation among {high:,}, divided by that among {low:,}",
    )
    for _, rows in grouped(results, "batch", "algorithm", "prior"):
        times = {
            (row["subject"], row["simulations"]): row["milliseconds_per_simulation"]
            for row in rows
        }
        growths = (times[name, high] / times[name, low] for name in subjects)
        table.add_row(setting_name(rows[0]), *(f"{growth:.2f}" for growth in growths))
    return table


def grouped(results: list[dict], *names: str) -> list[tuple[tuple, list[dict]]]:
    """Groups the results by the values of some fields, in order of occurrence."""
    groups: dict[tuple, list[dict]] = {}
    for result in results:
        groups.setdefault(tuple(result[name] for name in names), []).append(result)
    return list(groups.items())


def setting_name(result: dict) -> str:
    """Returns a description of the setting of a measurement."""
    algorithm = TITLES[result["algorithm"]]
    return f"{algorithm}, {result['prior']} prior, {result['batch']:,} games"


def draw(results: list[dict]) -> Figure:
    """Plots time per simulation against simulations, with a panel for each setting."""
    panels = grouped(results, "batch", "algorithm", "prior")
    columns = len({result["prior"] for result in results})
    rows = len(panels) // columns
    figure = Figure(
        figsize=(4.5 * columns, 1.1 + 3 * rows),
        dpi=150,
        facecolor="white",
        layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, hspace=0.05, wspace=0.03),
    )
    grid = figure.subplots(rows, columns, sharex=True, sharey="row", squeeze=False)
    for axes, (_, panel) in zip(grid.flat, panels, strict=True):
        draw_panel(axes, panel)
    for axes, (_, panel) in zip(grid[:, 0], panels[::columns], strict=True):
        axes.set_ylabel(
            f"milliseconds a simulation, {panel[0]['batch']:,} games",
            color=PALE_INK,
            fontsize=9,
        )
    for axes in grid[-1]:
        axes.set_xlabel("simulations", color=PALE_INK, fontsize=9)
    figure.suptitle(
        f"Tree search with a trivial network, {results[0]['device']}",
        x=0.015,
        ha="left",
        color=INK,
        fontsize=14,
        fontweight="bold",
    )
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        labelcolor=INK,
        fontsize=10,
    )
    return figure


def draw_panel(axes: Axes, results: list[dict]) -> None:
    """Draws a line for each subject of one setting."""
    for name, (label, color, style) in LINES.items():
        rows = [row for row in results if row["subject"] == name]
        axes.loglog(
            [row["simulations"] for row in rows],
            [row["milliseconds_per_simulation"] for row in rows],
            color=color,
            label=label,
            linestyle=style,
            linewidth=2,
            marker="o",
            markersize=5,
            markeredgecolor="white",
        )
    counts = sorted({row["simulations"] for row in results})
    [gain] = (
        row["times_as_fast_as_mctx"]
        for row in results
        if (row["subject"], row["simulations"]) == ("azjax", counts[-1])
    )
    algorithm, prior = TITLES[results[0]["algorithm"]], results[0]["prior"]
    title = f"{algorithm}, {prior} prior"
    axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold")
    axes.set_title(
        f"{gain:.1f} times as fast as mctx at {counts[-1]:,}",
        loc="right",
        color=LINES["azjax"][1],
        fontsize=9,
    )
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    number = FuncFormatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_major_formatter(number)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(number)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, labelcolor=PALE_INK, labelsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(PALE_INK)


def main(settings: Settings) -> None:
    """Measures, prints and draws."""
    if settings.quick:
        settings = dataclasses.replace(
            settings, batch=(4,), simulations=(4,), repeats=1
        )
    results = [
        result
        for batch in settings.batch
        for algorithm in settings.algorithms
        for simulations in settings.simulations
        for result in measure(batch, algorithm, simulations, settings)
    ]
    settings_measured = grouped(results, "batch", "algorithm", "prior")
    tables = [make_speed_table(rows) for _, rows in settings_measured]
    tables.append(make_growth_table(results))
    show(results, *tables, as_json=settings.json)
    if settings.plot:
        draw(results).savefig(settings.plot)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
