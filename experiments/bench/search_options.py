"""Measures the effect of search options, with the pretrained player.

    python experiments/bench/search_options.py root-visits
    python experiments/bench/search_options.py match PLAYER OPPONENT
    python experiments/bench/search_options.py mistakes PLAYER...

`root-visits` plays Connect Four against itself and counts the root's visits of each
move, with and without tree reuse. `match` plays two players, named as for
`azjax play --opponent`, against each other from random openings, each of them once with
each color. `mistakes` grades players on azjax's solved positions and compares them.
"""

import json
import time
from typing import Literal

import jax
import numpy as np
import rich
import tyro

from azjax import games
from azjax.arena import grade, play_match, shipped
from azjax.players import load_compiled, load_run
from azjax.search import SEARCHES
from azjax.training.config import SelfPlayConfig
from azjax.training.self_play import make_self_play, start_games

GAME = games.make("connect_four")


def root_visits(  # noqa: PLR0917  # a command, called by name
    simulations: int = 100,
    tree_reuse_nodes: int = 1000,
    games: int = 128,
    moves: int = 64,
    algorithm: Literal["gumbel", "alphazero"] = "alphazero",
    json: bool = False,
) -> None:
    """Counts the root's visits of a move in self-play.

    Args:
        simulations: network evaluations per move.
        tree_reuse_nodes: most nodes kept of each tree, with tree reuse.
        games: parallel games.
        moves: moves of each game.
        algorithm: search algorithm.
        json: print JSON instead of text.
    """
    trained = load_run("pretrained", GAME)
    config = SelfPlayConfig(
        num_games=games, moves_per_chunk=moves, num_simulations=(simulations,)
    )
    result: dict[str, float] = {"simulations": simulations}
    for name, kept in (("kept", tree_reuse_nodes), ("not_kept", 0)):
        search = SEARCHES.find(algorithm)(tree_reuse_nodes=kept)
        play_chunk = make_self_play(GAME, trained.network, search, config)
        start = time.perf_counter()
        _, _, metrics, _ = play_chunk(
            trained.variables,
            simulations,
            start_games(GAME, config.num_games, jax.random.key(1)),
            jax.random.key(2),
        )
        result[name] = float(metrics.root_visits)
        result[f"{name}_seconds"] = time.perf_counter() - start
    result["ratio"] = result["kept"] / result["not_kept"]
    show(
        result,
        f"{algorithm}, {simulations} simulations a move: {result['kept']:.1f} root "
        f"visits with the tree kept, {result['not_kept']:.1f} without: "
        f"{result['ratio'] - 1:+.0%}",
        as_json=json,
    )


def match(  # noqa: PLR0917  # a command, called by name
    player: str,
    opponent: str,
    /,
    num_games: int = 400,
    opening_moves: int = 4,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Plays two players against each other.

    Args:
        player: for example `alphazero:RUN?simulations=100&tree_reuse_nodes=1000`.
        opponent: another player spec.
        num_games: even.
        opening_moves: random moves before each game.
        seed: seed of the openings.
        json: print JSON instead of text.
    """
    start = time.perf_counter()
    match = play_match(
        GAME,
        load_compiled(player, GAME),
        load_compiled(opponent, GAME),
        jax.random.key(seed),
        num_games,
        opening_moves=opening_moves,
    )
    total = match.total
    low, high = match.interval
    seconds = time.perf_counter() - start
    show(
        {"score": total.score, "low": low, "high": high, **total._asdict()},
        f"{player} against {opponent}: {total.wins} won, {total.draws} drawn, "
        f"{total.losses} lost; score {total.score:.1%} (95% interval {low:.1%} to "
        f"{high:.1%}), {seconds:.0f} s",
        as_json=json,
    )


def mistakes(
    players: tyro.conf.Positional[tuple[str, ...]], /, json: bool = False
) -> None:
    """Grades players on azjax's solved positions; compares all with the first one,
    position by position.

    Args:
        players: for example `alphazero:pretrained?simulations=200&use_solver=true`.
        json: print JSON instead of text.
    """
    positions = shipped(GAME)
    assert positions is not None
    first = None
    for player in players:
        start = time.perf_counter()
        graded = grade(load_compiled(player, GAME), positions, jax.random.key(0))
        seconds = time.perf_counter() - start
        first = graded.is_mistake if first is None else first
        low, high = graded.mean_interval
        more, margin = difference(graded.is_mistake, first)
        show(
            {
                "player": player,
                "mistakes": graded.mean,
                "low": low,
                "high": high,
                "difference": more,
                "margin": margin,
            },
            f"{player}: {graded.mean:.2%} mistakes (95% interval {low:.2%} to "
            f"{high:.2%}), {more:+.2%} (± {margin:.2%}) against the first player, "
            f"{seconds:.0f} s",
            as_json=json,
        )


def difference(is_mistake: np.ndarray, of_first: np.ndarray) -> tuple[float, float]:
    """Returns the mean difference of two players' mistakes in the same positions, and
    half the width of its 95% interval."""
    differences = is_mistake.astype(float) - of_first
    margin = 1.96 * differences.std() / len(differences) ** 0.5
    return float(differences.mean()), float(margin)


def show(result: dict, text: object, *, as_json: bool) -> None:
    """Prints the measurements."""
    if as_json:
        print(json.dumps(result))
    else:
        rich.print(text)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict(
        {
            "root-visits": root_visits,
            "match": match,
            "mistakes": mistakes,
        },
        description=__doc__,
    )
