"""Draws the pictures of the page that explains AlphaZero.

python experiments/draw_lessons.py --directory docs/images

The pretrained player of Connect Four searches one position by PUCT, without noise. The
network prefers a move that only draws; the search finds one that wins.
"""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import tyro
from matplotlib.figure import Figure

from azjax import games, players
from azjax.devices import jit_network
from azjax.games.host import first_state, next_state
from azjax.players import Analysis, Branches

GAME = "connect_four"
MOVES = "2 1 5 5 5 2"
SIMULATIONS = (8, 16, 32, 64, 128, 200, 400, 800)
DRAWN = 200  # simulations of the pictures of one search
NODES = 28  # of the tree
INK, NETWORK, SEARCH = "#26333f", "#8a97a3", "#1f6fb2"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    directory: where the pictures are written.
    """

    directory: Path = Path("docs/images")


def position() -> tuple[games.Game, object, int]:
    """Returns the game, the position, and the last move."""
    game = games.make(GAME)
    state, action = first_state(game), -1
    for move in MOVES.split():
        action = game.text_to_action(state, move)
        state = next_state(game, state, action)
    return game, state, action


def search(game: games.Game, state: object, simulations: int) -> tuple[Analysis, float]:
    """Returns the statistics of a search, and the value of the position."""
    spec = f"alphazero:pretrained?simulations={simulations}&algorithm=alphazero"
    player = players.load(spec, game)
    if not isinstance(player, players.AlphaZeroPlayer):
        raise TypeError(f"not a player that searches: {spec}")
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
    choice, analysis, _ = jit_network(player.analyze, static_argnums=2)(
        jax.random.key(0), batch, None
    )
    return jax.device_get(analysis), float(choice.value[0])


def draw_shares(analyses: dict[int, Analysis], file: Path) -> None:
    """Draws the share of the visits of each move over the number of simulations, and
    the values of the moves in the longest search."""
    figure = Figure(figsize=(9, 3.4), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    counts = list(analyses)
    visits = np.stack([analyses[count].visits[0] for count in counts])
    shares = visits / visits.sum(axis=1, keepdims=True)
    shown = np.flatnonzero(shares.max(axis=0) > 0.02)
    height = -1.0
    for action in shown[np.argsort(shares[-1, shown])]:
        (line,) = left.plot(counts, shares[:, action], marker="o", ms=4)
        height = max(shares[-1, action], height + 0.06)  # labels do not overlap
        left.text(counts[-1] * 1.08, height, f"{action + 1}", color=line.get_color())
    left.set(xscale="log", xlabel="simulations", ylabel="share of the visits")
    left.set_xticks(counts, labels=map(str, counts))
    left.minorticks_off()
    left.set_title("Visits of each column", fontsize=11)
    last = analyses[counts[-1]]
    tried = np.flatnonzero(last.visits[0])
    right.bar([str(a + 1) for a in tried], last.action_values[0][tried], color=SEARCH)
    right.axhline(0, color=INK, lw=0.8)
    right.set(ylim=(-1, 1), xlabel="column", ylabel="expected result for the mover")
    right.set_title(f"Values after {counts[-1]} simulations", fontsize=11)
    figure.savefig(file, metadata={"Date": None})


def places(branches: Branches) -> np.ndarray:
    """Returns `[N, 2]` places of the nodes: leaves side by side, parents above the mean
    of their children."""
    parents = branches.parents[0][:NODES]
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents[1:], start=1):
        children[parent].append(node)
    where = np.zeros((len(parents), 2))
    next_leaf = 0

    def place(node: int, depth: int) -> None:
        nonlocal next_leaf
        for child in sorted(
            children[node], key=lambda child: branches.actions[0, child]
        ):
            place(child, depth + 1)
        if children[node]:
            where[node, 0] = where[children[node], 0].mean()
        else:
            where[node, 0], next_leaf = next_leaf, next_leaf + 1
        where[node, 1] = -depth

    place(0, 0)
    return where


def draw_tree(branches: Branches, file: Path) -> None:
    """Draws the most visited nodes; the area of a node is its number of visits."""
    where = places(branches)
    visits = branches.visits[0][: len(where)]
    values = branches.values[0][: len(where)]
    figure = Figure(figsize=(9, 5.2), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.axis("off")
    for node, parent in enumerate(branches.parents[0][: len(where)]):
        if node:
            width = 0.6 + 5 * visits[node] / visits[0]
            ends = where[[parent, node]]
            axes.plot(*ends.T, color="#b9c3cc", lw=width, zorder=1)
            x, y = ends[0] * 0.35 + ends[1] * 0.65
            axes.text(
                x,
                y,
                str(branches.actions[0, node] + 1),
                color=INK,
                ha="center",
                va="center",
                fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            )
    points = axes.scatter(
        *where.T,
        s=60 + 900 * visits / visits[0],
        c=values,
        cmap="RdYlGn",
        vmin=-1,
        vmax=1,
        edgecolors=INK,
        linewidths=0.6,
        zorder=2,
    )
    for (x, y), count in zip(where, visits, strict=True):
        axes.text(x, y, str(count), fontsize=7, ha="center", va="center", zorder=3)
    axes.margins(0.06, 0.1)
    figure.colorbar(points, label="value for the player who made the move", shrink=0.6)
    figure.savefig(file, metadata={"Date": None})


def main(settings: Settings) -> None:
    """Searches, draws, and prints the numbers of the page."""
    mpl.rcParams["svg.hashsalt"] = "azjax"  # the same file each time
    game, state, last_action = position()
    searches = {count: search(game, state, count) for count in SIMULATIONS}
    analyses = {count: analysis for count, (analysis, _) in searches.items()}
    drawn = analyses[DRAWN]
    prior = np.asarray(drawn.prior[0])
    improved = np.asarray(drawn.visits[0]) / drawn.visits[0].sum()
    settings.directory.mkdir(parents=True, exist_ok=True)
    for name, policies in (
        ("prior", {"network": prior}),
        ("search", {"network": prior, "search": improved}),
    ):
        file = settings.directory / f"{name}.svg"
        file.write_text(game.to_svg(state, last_action, policies))
    draw_shares(analyses, settings.directory / "visits.svg")
    if drawn.branches is not None:
        draw_tree(drawn.branches, settings.directory / "tree.svg")
    print("prior:", np.round(prior, 2))
    for count, (analysis, value) in searches.items():
        print(
            f"{count} simulations: visits {analysis.visits[0]}, "
            f"values {np.round(analysis.action_values[0], 2)}, position {value:.2f}"
        )


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
