"""Measures what averaging the network over a game's symmetries is worth in play.

    python experiments/bench/symmetries.py mistakes none:16 root:16 nodes:16 none:33
    python experiments/bench/symmetries.py match othello root:64 none:71

A player is PLACE:SIMULATIONS. PLACE says which evaluations of the pretrained player's
search are means over all S symmetries: `none`, that of the `root`, which costs S - 1
more, or those of all `nodes`, which cost S times as many; `random` averages the root
and evaluates every other node under a random symmetry. With 0 simulations the network
plays alone. `mistakes` grades players on azjax's solved positions of Connect Four and
compares all with the first one, position by position. `match` plays two against each
other from random openings, each of them once with each color.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import rich
import tyro
from flax import struct
from search_options import difference

from azjax import games
from azjax.arena import grade, play_match, shipped
from azjax.games import Game, State
from azjax.networks import (
    Network,
    Variables,
    expected_value,
    predict,
    result_probabilities,
)
from azjax.players import Choice, load_run
from azjax.players.edges import action_of, by_action
from azjax.players.model import (
    evaluate,
    evaluate_symmetries,
    is_illegal,
    make_root,
    recurrent_fn_of,
)
from azjax.search import SearchConfig

PLACES = ("none", "root", "nodes", "random")


@struct.dataclass
class TrialPlayer:
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


def trial_player(game: Game, text: str) -> TrialPlayer:
    """Returns the pretrained player of a game that plays as PLACE:SIMULATIONS says."""
    place, _, simulations = text.partition(":")
    if place not in PLACES or not simulations.isdecimal():
        raise SystemExit(f"a player is PLACE:SIMULATIONS, PLACE of {PLACES}: {text!r}")
    trained = load_run("pretrained", game)
    return TrialPlayer(
        game,
        trained.search,
        trained.network,
        trained.variables,
        place,
        int(simulations),
    )


def mistakes(players: tyro.conf.Positional[tuple[str, ...]], /) -> None:
    """Grades players on the solved positions of Connect Four.

    Args:
        players: PLACE:SIMULATIONS of each.
    """
    game = games.make("connect_four")
    positions = shipped(game)
    assert positions is not None
    first = None
    for text in players:
        start = time.perf_counter()
        graded = grade(trial_player(game, text), positions, jax.random.key(0))
        seconds = time.perf_counter() - start
        first = graded.is_mistake if first is None else first
        more, margin = difference(graded.is_mistake, first)
        rich.print(
            f"{text}: {graded.mean:.2%} mistakes, {more:+.2%} (± {margin:.2%}) against "
            f"{players[0]}, {seconds:.0f} s"
        )


def match(  # noqa: PLR0917  # a command, called by name
    game: str,
    player: str,
    opponent: str,
    /,
    num_games: int = 1000,
    opening_moves: int = 6,
    seed: int = 0,
) -> None:
    """Plays two players against each other.

    Args:
        game: a game with a pretrained player.
        player: PLACE:SIMULATIONS.
        opponent: PLACE:SIMULATIONS.
        num_games: even.
        opening_moves: random moves before each game.
        seed: seed of the openings.
    """
    start = time.perf_counter()
    made = games.make(game)
    result = play_match(
        made,
        trial_player(made, player),
        trial_player(made, opponent),
        jax.random.key(seed),
        num_games,
        opening_moves=opening_moves,
    )
    low, high = result.interval
    rich.print(
        f"{player} against {opponent}: score {result.total.score:.1%} (95% interval "
        f"{low:.1%} to {high:.1%}), {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict(
        {"mistakes": mistakes, "match": match}, description=__doc__
    )
