"""Evaluation of a trained player: solved positions; matches with random, untrained and
perfect opponents."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.matches import (
    GAMES_AT_ONCE,
    MatchResult,
    WinDrawLoss,
    check_num_games,
    play_game,
    play_openings,
)
from azjax.arena.openings import suite
from azjax.arena.solved import GRADED_AT_ONCE, Grade, SolvedPositions, grade
from azjax.arena.statistics import wilson_interval
from azjax.games import Game, State, host
from azjax.networks import CustomModules
from azjax.players import (
    NetworkPlayer,
    Player,
    RandomPlayer,
    TrainedPlayer,
    first_network,
)
from azjax.players.core import AnyPlayer, ExternalPlayer, PlayerSession
from azjax.players.simple import perfect_player

OPENING_MOVES = 2
OPPONENTS = {
    "random": "random moves",
    "first": "an untrained network",
    "perfect": "perfect play",
}
# On a CPU larger batches take as long for a position, and report progress later. Pairs
# of games and positions share a program.
CPU_BATCH = 32


class PerfectMatch(NamedTuple):
    """N games of a player from the initial position against a perfect player.

    side: 0 or 1, the player's side: the one that wins under perfect play; 0 if perfect
        play draws.
    value: its result under perfect play: 1 win, 0 draw.
    results: `[N]` int; its results: 1 win, 0 draw, -1 loss.
    lost_at: `[N]` int; number of the move that gave the result of perfect play away,
        where the moves of both sides are counted from 1; 0 if none did.
    """

    side: int
    value: int
    results: np.ndarray
    lost_at: np.ndarray

    @property
    def total(self) -> WinDrawLoss:
        """The numbers of games won, drawn and lost."""
        wins, draws, losses = ((self.results == value).sum() for value in (1, 0, -1))
        return WinDrawLoss(int(wins), int(draws), int(losses))

    @property
    def kept(self) -> int:
        """The number of games with the result of perfect play."""
        return int((self.lost_at == 0).sum())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the fraction of games that were kept."""
        return wilson_interval(self.kept / len(self.lost_at), len(self.lost_at))

    @property
    def losing_moves(self) -> dict[int, int]:
        """The numbers of games by the number of the move that gave the result away."""
        moves, games = np.unique(self.lost_at[self.lost_at > 0], return_counts=True)
        return dict(zip(moves.tolist(), games.tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Returns the results as JSON values."""
        return {
            "side": self.side,
            "value": self.value,
            **self.total._asdict(),
            "kept": self.kept,
            "interval": list(self.interval),
            "losing_moves": {str(k): games for k, games in self.losing_moves.items()},
        }


def play_perfect_match(
    game: Game,
    player: AnyPlayer,
    opponent: ExternalPlayer,
    num_games: int,
    rng_key: jax.Array,
    *,
    on_games: Callable[[int], object] = lambda games: None,
) -> PerfectMatch:
    """Plays games from the initial position, as the side that perfect play favors.

    Args:
        game: a game without chance.
        player: the player.
        opponent: a perfect player, whose values are exact results.
        num_games: at least 1; they differ if one of the players chooses at random.
        rng_key: for the seeds of the players; consumed.
        on_games: called with 1 after each game.
    """
    solver = opponent.start_session(game, seed=0)
    first_value = _exact_value(solver, host.first_state(game), [])
    side, value = (0 if first_value >= 0 else 1), abs(first_value)
    seeds = np.asarray(jax.random.bits(rng_key, (num_games, 2), jnp.uint32)).tolist()
    results, lost_at = [], []
    for pair in seeds:
        sides = (opponent, player) if side else (player, opponent)
        ended = play_game(game, sides, [], pair, np.random.default_rng(pair))
        results.append(-ended.result if side else ended.result)
        lost_at.append(0)
        if results[-1] < value:
            lost_at[-1] = _losing_move(game, solver, ended.moves, side, value)
        on_games(1)
    return PerfectMatch(side, value, np.array(results), np.array(lost_at))


def _losing_move(
    game: Game, solver: PlayerSession, moves: Sequence[int], side: int, value: int
) -> int:
    """Returns the number of the first move after which perfect play gives `side` less
    than `value`; its last move if no later position of its own is left."""
    state, last = host.first_state(game), 0
    for number, action in enumerate(moves, start=1):
        if int(state.current_player) == side:
            if _exact_value(solver, state, moves[: number - 1]) < value:
                break
            last = number
        state = host.next_state(game, state, action)
    return last


def _exact_value(solver: PlayerSession, state: State, moves: Sequence[int]) -> int:
    value = solver.choose(state, moves).value
    if value is None:
        raise ValueError("a perfect player must give exact values")
    return round(value)


class EvaluationReport(NamedTuple):
    """The result of `evaluate`.

    simulations: of the search.
    network: grade of the network alone; None without solved positions.
    search: grade of the search with the network; None without solved positions.
    matches: results by player (`network` or `search`) and opponent (`random`, `first`,
        the untrained network, or `perfect`, in a game with chance that has a perfect
        player).
    perfect: games from the initial position against the perfect player, by player;
        empty without matches, in games with chance, and without a perfect player.
    has_chance: whether the game has chance; then the lost win probability is reported.
    """

    simulations: int
    network: Grade | None
    search: Grade | None
    matches: dict[tuple[str, str], MatchResult]
    perfect: dict[str, PerfectMatch]
    has_chance: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON object of `azjax evaluate --json`."""
        grades = {"network": self.network, "search": self.search}
        perfect = {player: match.to_json() for player, match in self.perfect.items()}
        return {
            **{
                name: {
                    "mean": grade.mean,
                    "interval": list(grade.mean_interval),
                    **(
                        {
                            "win_probability_lost": grade.mean_lost,
                            "win_probability_lost_interval": grade.mean_lost_interval,
                        }
                        if self.has_chance
                        else {}
                    ),
                    "groups": {
                        group: {
                            "mistake_rate": mistakes.rate,
                            "interval": list(mistakes.interval),
                            "positions": mistakes.positions,
                        }
                        for group, mistakes in grade.groups.items()
                    },
                }
                for name, grade in grades.items()
                if grade
            },
            "simulations": self.simulations,
            "matches": [
                {
                    "player": player,
                    "opponent": opponent,
                    **result.total._asdict(),
                    "score": result.total.score,
                    "interval": list(result.interval),
                }
                for (player, opponent), result in self.matches.items()
            ],
            **({"against_perfect": perfect} if perfect else {}),
        }


def evaluate(
    trained: TrainedPlayer,
    positions: SolvedPositions | None,
    rng_key: jax.Array,
    *,
    simulations: int,
    num_games: int,
    modules: CustomModules | None = None,
    on_progress: Callable[[str, int, int], object] = lambda part, done, total: None,
) -> EvaluationReport:
    """Grades a trained player and plays matches; the key is consumed.

    Args:
        trained: the player.
        positions: solved positions of its game, or None.
        rng_key: for openings and players.
        simulations: network evaluations per move of the search.
        num_games: games per match, from openings of two random moves; an even number,
            or 0 for no matches; half as many from the initial position against the
            perfect player of a game without chance.
        modules: the user's own modules, if the network has any.
        on_progress: called with a description of the current part of the work, and how
            many of its games or positions are done.
    """
    game, network = trained.game, trained.network
    opening_key, grade_key, match_key, perfect_key = jax.random.split(rng_key, 4)
    openings = None
    if num_games:
        check_num_games(num_games)
        openings = suite(game, opening_key, num_games // 2, OPENING_MOVES)
    players: dict[str, Player] = {
        "network": NetworkPlayer(game, network, trained.variables),
        "search": trained.player(simulations),
    }
    positions_at_once, games_at_once = GRADED_AT_ONCE, GAMES_AT_ONCE
    if jax.default_backend() == "cpu":
        positions_at_once, games_at_once = CPU_BATCH, 2 * CPU_BATCH

    def counter(total: int, part: str) -> Callable[[int], None]:
        """Returns a function that is called with what has just been done of a part."""
        done = 0

        def add(number: int) -> None:
            nonlocal done
            done += number
            on_progress(part, done, total)

        add(0)
        return add

    # Mistakes in solved positions.
    grades: dict[str, Grade] = {}
    if positions is not None:
        keys = jax.random.split(grade_key, len(players))
        for (name, player), key in zip(players.items(), keys, strict=True):
            add = counter(len(positions), f"positions, {name}")
            grades[name] = grade(
                player, positions, key, positions_at_once, on_positions=add
            )
    opponents: dict[str, Player] = {"random": RandomPlayer(game)}
    # Building the untrained network needs the user's own modules.
    if modules is not None or not trained.has_custom_modules:
        own_modules = modules if trained.has_custom_modules else None
        _, first = first_network(trained.seed, game, trained.config, own_modules)
        opponents["first"] = NetworkPlayer(game, network, first)
    solver = perfect_player(game)
    if solver is not None and not isinstance(solver, ExternalPlayer):
        opponents["perfect"] = solver
    # Matches, all from the same openings.
    matches = {}
    if openings is not None:
        met = list(itertools.product(opponents, players))
        keys = jax.random.split(match_key, len(met))
        for (opponent, name), key in zip(met, keys, strict=True):
            add = counter(num_games, f"games, {name} against {OPPONENTS[opponent]}")
            matches[name, opponent] = play_openings(
                *(game, players[name], opponents[opponent], openings, key),
                games_at_once=games_at_once,
                on_games=add,
            )
    # Games from the initial position against perfect play, if its results are exact.
    perfect = {}
    if isinstance(solver, ExternalPlayer) and num_games:
        keys = jax.random.split(perfect_key, len(players))
        for (name, player), key in zip(players.items(), keys, strict=True):
            add = counter(num_games // 2, f"games, {name} against perfect play")
            perfect[name] = play_perfect_match(
                game, player, solver, num_games // 2, key, on_games=add
            )
    return EvaluationReport(
        simulations,
        grades.get("network"),
        grades.get("search"),
        matches,
        perfect,
        has_chance=bool(game.num_outcomes),
    )
