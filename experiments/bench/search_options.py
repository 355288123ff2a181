"""Measures the effect of search options, with the pretrained player.

    python experiments/bench/search_options.py root-visits
    python experiments/bench/search_options.py match PLAYER OPPONENT
    python experiments/bench/search_options.py mistakes PLAYER...

`root-visits` plays Connect Four against itself and counts the root's visits of each
move, with and without tree reuse. `match` plays two players against each other from
random openings, each of them once with each color. `mistakes` grades players on azjax's
solved positions of Connect Four and compares all with the first one, position by
position.

A player is named as for `azjax play --opponent`, or is PLACE:SIMULATIONS, which
measures what averaging the network over a game's symmetries is worth:

    python experiments/bench/search_options.py mistakes none:16 root:16 nodes:16 none:33
    python experiments/bench/search_options.py match root:64 none:71 --game othello

PLACE says which evaluations of the pretrained player's search are means over all S
symmetries: `none`, that of the `root`, which costs S - 1 more, or those of all `nodes`,
which cost S times as many; `random` averages the root and evaluates every other node
under a random symmetry. With 0 simulations the network plays alone.
"""

import time
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from flax import struct
from harness import show

from azjax import games as all_games
from azjax.arena import grade, play_match, shipped
from azjax.games import Game, State
from azjax.networks import (
    Network,
    Variables,
    expected_value,
    predict,
    result_probabilities,
)
from azjax.players import Choice, load_compiled, load_run
from azjax.players.model import (
    action_of,
    by_action,
    evaluate,
    evaluate_symmetries,
    is_illegal,
    make_root,
    recurrent_fn_of,
)
from azjax.search import SEARCHES, SearchConfig
from azjax.training.config import SelfPlayConfig
from azjax.training.self_play import make_self_play, start_games

GAME = all_games.make("connect_four")
PLACES = ("none", "root", "nodes", "random")


@struct.dataclass
class SymmetriesPlayer:
    """Searches with the network's outputs averaged over symmetries.

    place: one of `PLACES`.
    simulations: 0 for the network alone.
    """

    game: Game = struct.field(pytree_node=False)
    search: SearchConfig = struct.field(pytree_node=False)
    network: Network = struct.field(repr=False)
    variables: Variables = struct.field(repr=False)
    place: str = struct.field(pytree_node=False)
    simulations: int = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        root_key, search_key = jax.random.split(rng_key)
        at_root = self._plain if self.place == "none" else self._mean
        logits, result = at_root(root_key, states)
        if not self.simulations:
            policy, value = jax.nn.softmax(logits), expected_value(result)
            return Choice(logits.argmax(axis=-1).astype(jnp.int32), policy, value)
        below = {"nodes": self._mean, "random": self._random}
        evaluate_after = below.get(self.place, self._plain)
        root = make_root(self.game, logits, result, states)
        output = self.search.policy(explores=False)(
            self.variables,
            search_key,
            root,
            recurrent_fn_of(self.game, lambda _, *position: evaluate_after(*position)),
            self.simulations,
            invalid_actions=is_illegal(jnp.asarray(root.prior_logits)),
            max_depth=self.game.max_moves,
        )
        weights = by_action(
            root.embedding, output.action_weights, self.game.num_actions
        )
        action = action_of(root.embedding, output.action)
        return Choice(action, weights, jnp.zeros(len(weights)))

    def _plain(self, rng_key, states):
        del rng_key
        return evaluate(self.game, self.network, self.variables, states)

    def _mean(self, rng_key, states):
        del rng_key
        return evaluate_symmetries(self.game, self.network, self.variables, states)

    def _random(self, rng_key, states):
        symmetries = self.game.symmetries
        observation = jax.vmap(self.game.observe)(states)
        images = jnp.stack(
            [symmetry.observation(observation) for symmetry in symmetries]
        )
        row = jnp.arange(images.shape[1])
        drawn = jax.random.randint(rng_key, row.shape, 0, len(symmetries))
        found = predict(self.network, self.variables, images[drawn, row])
        inverses = np.stack([np.argsort(symmetry.actions) for symmetry in symmetries])
        logits = jnp.take_along_axis(
            found.policy_logits, jnp.asarray(inverses)[drawn], axis=-1
        )
        legal = jax.vmap(self.game.legal_action_mask)(states)
        masked = jnp.where(legal, logits, jnp.finfo(jnp.float32).min)
        return masked, result_probabilities(found.value_logits)


def load(text: str, game: Game):
    """Returns a player by its name, see the top of this file."""
    place, _, simulations = text.partition(":")
    if place not in PLACES or not simulations.isdecimal():
        return load_compiled(text, game)
    run = load_run("pretrained", game)
    return SymmetriesPlayer(
        game, run.search, run.network, run.variables, place, int(simulations)
    )


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
    text = (
        f"{algorithm}, {simulations} simulations a move: {result['kept']:.1f} root "
        f"visits with the tree kept, {result['not_kept']:.1f} without: "
        f"{result['ratio'] - 1:+.0%}"
    )
    show(result, text, as_json=json)


def match(  # noqa: PLR0917  # a command, called by name
    player: str,
    opponent: str,
    /,
    game: str = "connect_four",
    num_games: int = 400,
    opening_moves: int = 4,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Plays two players against each other.

    Args:
        player: for example `alphazero:RUN?simulations=100&tree_reuse_nodes=1000`.
        opponent: another player.
        game: a game; of `PLACE:SIMULATIONS`, one with a pretrained player.
        num_games: even.
        opening_moves: random moves before each game.
        seed: seed of the openings.
        json: print JSON instead of text.
    """
    start = time.perf_counter()
    made = all_games.make(game)
    result = play_match(
        made,
        load(player, made),
        load(opponent, made),
        jax.random.key(seed),
        num_games,
        opening_moves=opening_moves,
    )
    total, (low, high) = result.total, result.interval
    seconds = time.perf_counter() - start
    text = (
        f"{player} against {opponent}: {total.wins} won, {total.draws} drawn, "
        f"{total.losses} lost; score {total.score:.1%} (95% interval {low:.1%} to "
        f"{high:.1%}), {seconds:.0f} s"
    )
    row = {"score": total.score, "low": low, "high": high, **total._asdict()}
    show(row, text, as_json=json)


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
        graded = grade(load(player, GAME), positions, jax.random.key(0))
        seconds = time.perf_counter() - start
        first = graded.is_mistake if first is None else first
        low, high = graded.mean_interval
        differences = graded.is_mistake.astype(float) - first
        more = float(differences.mean())
        margin = float(1.96 * differences.std() / len(differences) ** 0.5)
        row = {
            "player": player,
            "mistakes": graded.mean,
            "low": low,
            "high": high,
            "difference": more,
            "margin": margin,
        }
        text = (
            f"{player}: {graded.mean:.2%} mistakes (95% interval {low:.2%} to "
            f"{high:.2%}), {more:+.2%} (± {margin:.2%}) against the first player, "
            f"{seconds:.0f} s"
        )
        show(row, text, as_json=json)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict(
        {"root-visits": root_visits, "match": match, "mistakes": mistakes},
        description=__doc__,
    )
