import dataclasses
import math

import jax
import pytest
from coin_toss import CoinToss
from flax import nnx, struct
from untrained import untrained

from azjax import games
from azjax.networks import ConvTrunkConfig, CustomModules, NetworkConfig
from azjax.players import (
    MissingModulesError,
    RandomPlayer,
    TrainedPlayer,
    save_player,
)
from azjax.search import GumbelConfig
from azjax.training import EvaluationConfig, TrainConfig, train
from azjax.training import evaluation as module
from azjax.training.evaluation import Evaluator
from azjax.training.loop import named_players

GAME = games.make("tic_tac_toe")
NETWORK = NetworkConfig(trunk=ConvTrunkConfig(num_blocks=0, channels=4))
CONFIG = TrainConfig(
    game="tic_tac_toe",
    iterations=1,
    network=NETWORK,
    evaluation=EvaluationConfig(num_positions=50, num_simulations=2, num_games=4),
)
RATES = ("network_mistakes", "search_mistakes")


@pytest.fixture(scope="module")
def graded():
    network, variables = untrained(GAME, NETWORK)
    trained = TrainedPlayer(GAME, network, variables, NETWORK, GumbelConfig(), seed=0)
    return named_players(trained, CONFIG.evaluation.num_simulations)


def evaluator(**changes):
    config = dataclasses.replace(CONFIG.evaluation, **changes)
    return Evaluator(GAME, config, config.opponents)


@pytest.fixture(scope="module", autouse=True)
def checked_keys():
    """Traces all programs once; reusing a key raises an error."""
    with jax.debug_key_reuse(True):
        yield


@pytest.fixture(scope="module")
def row(graded):
    return evaluator().evaluate(graded)


def test_each_rate_lies_in_its_interval(row):
    assert set(row) == {
        "scores",
        *(f"{rate}{end}" for rate in RATES for end in ("", "_low", "_high")),
    }
    rates = {name: row[name] for name in row if name != "scores"}
    rates |= row["scores"]["random"]
    for rate in (*RATES, "score"):
        assert 0 <= rates[f"{rate}_low"] <= rates[rate] <= rates[f"{rate}_high"] <= 1


def test_evaluation_is_deterministic(row, graded):
    assert evaluator().evaluate(graded) == row


def test_no_key_is_used_twice(row, graded):
    """An evaluation under `checked_keys` raises an error if a key is reused."""

    @struct.dataclass
    class Reusing:
        def choose(self, rng_key, states):
            jax.random.bits(rng_key), jax.random.bits(rng_key)
            return graded["network"].choose(rng_key, states)

    assert row
    with pytest.raises(jax.errors.KeyReuseError):
        evaluator(num_positions=8).evaluate({"reusing": Reusing()})


def test_an_error_of_the_poll_ends_the_evaluation(graded):
    polls = []

    def poll(*, alone=False):
        polls.append(None)
        if len(polls) == 3:
            raise KeyError

    with pytest.raises(KeyError):
        evaluator().evaluate(graded, poll)
    assert len(polls) == 3  # after a batch of each player, in the match


class FlatTrunk(nnx.Module):
    def __init__(self, observation_shape, rngs):
        self.linear = nnx.Linear(math.prod(observation_shape), 8, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.linear(x.reshape(x.shape[0], -1)))


def test_an_opponent_can_have_the_modules_of_the_run(tmp_path):
    modules = CustomModules(trunk=FlatTrunk)
    network, variables = untrained(GAME, NETWORK, modules)
    own = {"seed": 0, "has_custom_modules": True}
    settings = (network, variables, NETWORK, GumbelConfig())
    save_player(tmp_path / "player", TrainedPlayer(GAME, *settings, **own))
    opponents = (f"network:{tmp_path}",)
    Evaluator(GAME, CONFIG.evaluation, opponents, modules=modules)
    with pytest.raises(MissingModulesError):
        Evaluator(GAME, CONFIG.evaluation, opponents)


def test_a_game_without_solved_positions_has_match_scores_only(
    row, graded, monkeypatch
):
    monkeypatch.setattr(module, "shipped", lambda game: None)
    unsolved = evaluator().evaluate(graded)
    assert unsolved["scores"] == row["scores"]
    assert not any("mistakes" in name for name in unsolved)


def test_players_of_games_with_chance_are_graded_by_the_win_probability_they_lose():
    game = CoinToss()
    row = Evaluator(game, CONFIG.evaluation, ()).evaluate({"any": RandomPlayer(game)})
    name = "any_win_probability_lost"
    assert set(row) == {"scores", name, f"{name}_low", f"{name}_high"}
    assert 0 <= row[f"{name}_low"] < row[name] < row[f"{name}_high"] < 0.5


def test_the_first_player_plays_every_opponent(graded):
    opponents = ("random", "network:pretrained")
    alone = {"alone": graded["network"]}
    row = evaluator(opponents=opponents, num_positions=8).evaluate(alone)
    scores = {name: row["scores"][name]["score"] for name in opponents}
    assert scores["network:pretrained"] < scores["random"]
    assert [name for name in row if name.endswith("_mistakes")] == ["alone_mistakes"]


def test_an_unknown_opponent_is_refused_before_anything_is_written(tmp_path):
    evaluation = EvaluationConfig(opponents=("network:nowhere",))
    run_dir = tmp_path / "run"
    config = dataclasses.replace(CONFIG, evaluation=evaluation, run_dir=str(run_dir))
    with pytest.raises(ValueError, match="no player in nowhere"):
        train(config)
    assert not run_dir.exists()


def test_more_games_than_openings_are_refused():
    with pytest.raises(ValueError, match="tic_tac_toe has too few different openings"):
        evaluator(num_games=4_000)
