import dataclasses

import jax
import numpy as np
import pytest
from compiled_games import play, stack
from flax import nnx
from training.tiny_runs import assert_same_player, metrics, stop_after
from training.tiny_runs import config as tiny_config

from azjax import games, players
from azjax.networks import (
    AuxiliaryHead,
    ConvTrunkConfig,
    CustomModules,
    NetworkConfig,
)
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    TrainConfig,
    load_config,
    train,
)
from azjax.training.analysis import forecast
from azjax.training.territory import (
    has_owners,
    territory_heads,
    training_network,
    with_territory_heads,
    without_territory_heads,
)

pytestmark = pytest.mark.usefixtures("quick_plots", "shared_programs")
GO = games.make("go:5")
LEARNER = LearnerConfig(batch_size=16, replay_ratio=1.0, owners_weight=0.5)


def config(directory, **changes) -> TrainConfig:
    settings = {
        "game": "go:3",
        "iterations": 4,
        "replay": ReplayConfig(capacity=512, min_window=288, min_positions=64),
        "learner": LEARNER,
        "evaluation": EvaluationConfig(
            num_evaluations=1, num_simulations=2, opponents=()
        ),
    }
    return tiny_config(directory, **settings | changes)


def rows(run):
    return [row for row in metrics(run) if row.get("policy_loss") is not None]


def targets(game, states, final):
    """Returns the targets of positions, given the last position of their game."""
    heads = territory_heads(game, 1.0)

    def of_state(state):
        return [head.target(state, final) for head in heads]

    return jax.device_get(jax.jit(jax.vmap(of_state))(stack(states)))


def test_the_owners_are_those_of_the_player_to_move():
    """Black owns the columns a and b, white d and e, nobody the column c."""
    moves = [f"{column}{row}" for row in range(1, 6) for column in "bd"]
    states = play(GO, ""), play(GO, "a1")  # black and white are to move
    owners, margin = targets(GO, states, play(GO, " ".join(moves)))
    expected = np.tile([1.0, 1.0, 0.0, -1.0, -1.0], (5, 1))
    np.testing.assert_array_equal(owners, [expected, -expected])
    assert margin[0] == 0


def test_the_margin_is_a_fraction_of_the_cells():
    states = play(GO, ""), play(GO, "a1")
    assert targets(GO, states, play(GO, "c3 pass pass"))[1].tolist() == [1, -1]


def test_the_owners_of_othello_are_its_discs():
    game = games.make("othello")
    state = play(game, "d3")
    [owners], [margin] = targets(game, [state], state)  # white is to move
    assert [owners[2, 3], owners[3, 3], owners[3, 4], owners[0, 0]] == [-1, -1, -1, 0]
    assert owners[4, 4] == 1
    assert margin == (1 - 4) / 64


@pytest.mark.parametrize("spec", ["go:5", "othello"])
def test_owners_move_with_the_symmetries(spec):
    game = games.make(spec)
    head, _ = territory_heads(game, 1.0)
    state = play(game, "d3" if spec == "othello" else "a5 e4")

    def images(state):
        owners, planes = head.target(state, state), game.observe(state)
        return [
            (symmetry.observation(planes), head.transform(symmetry, owners[None])[0])
            for symmetry in game.symmetries
        ]

    for image, moved in jax.device_get(jax.jit(images)(state)):
        # Where nobody has territory yet, the owners are those of the stones.
        stones = image[..., 0] - image[..., 1]
        np.testing.assert_array_equal(moved[stones != 0], stones[stones != 0])


@pytest.mark.parametrize("features_shape", [(5, 5, 7), (12,)])
def test_the_heads_fit_the_features(features_shape):
    def outputs(features):
        heads = territory_heads(GO, 1.0)
        return [head.make(features_shape, nnx.Rngs(0))(features) for head in heads]

    features = jax.ShapeDtypeStruct((3, *features_shape), np.float32)
    shapes = [found.shape for found in jax.eval_shape(outputs, features)]
    assert shapes == [(3, 5, 5), (3,)]


def test_the_owners_loss_is_the_mean_cross_entropy_of_the_cells():
    head, margin = territory_heads(GO, 0.5)
    logits, owners = np.full((2, 5, 5), 2.0), np.zeros((2, 5, 5))
    owners[0] = 1.0
    won = np.log1p(np.exp(-2.0))
    found = jax.jit(head.loss)(logits, owners)
    np.testing.assert_allclose(found, [won, won + 1.0], rtol=1e-6)
    assert head.weight == margin.weight == 0.5
    found = jax.jit(margin.loss)(np.array([0.5, 3.0]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, [0.125, 1.5])


def test_games_without_territory_have_no_owners():
    found = {spec for spec in games.available() if has_owners(games.make(spec))}
    assert found == {"go", "othello"}


def test_the_weights_of_the_other_heads_do_not_depend_on_the_territory_heads(tmp_path):
    settings = config(tmp_path)
    game = games.make(settings.game)
    with_heads, without = (
        training_network(
            dataclasses.replace(
                settings, learner=dataclasses.replace(LEARNER, owners_weight=weight)
            ),
            game,
            None,
        )[1]
        for weight in (0.5, 0.0)
    )
    found = without_territory_heads(with_heads)
    assert jax.tree.structure(found) == jax.tree.structure(without)
    jax.tree.map(np.testing.assert_array_equal, found, without)
    again = with_territory_heads(found, with_heads)
    assert jax.tree.structure(again) == jax.tree.structure(with_heads)
    jax.tree.map(np.testing.assert_array_equal, again, with_heads)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(config(tmp_path_factory.mktemp("runs") / "go"))


@pytest.mark.slow
def test_a_run_learns_territory_and_its_player_has_no_heads_of_it(run):
    assert rows(run)
    assert all(row["owners_loss"] > 0 and row["margin_loss"] > 0 for row in rows(run))
    loaded = players.load_player(run.directory)
    assert not loaded.has_custom_modules
    assert "auxiliary" not in loaded.variables.params
    jax.tree.map(np.testing.assert_array_equal, loaded.variables, run.player.variables)


@pytest.mark.slow
def test_a_stopped_run_with_territory_heads_goes_on_exactly(run, tmp_path):
    stopped = train(config(tmp_path / "go"), on_iteration=stop_after(3))
    assert not stopped.finished
    continued = train(load_config(stopped.directory))
    assert continued.finished
    losses = [[row["owners_loss"] for row in rows(each)] for each in (run, continued)]
    assert losses[0] == losses[1]
    assert_same_player(continued, run)


@pytest.mark.slow
def test_a_run_with_territory_heads_starts_from_a_player_without(run, tmp_path):
    source = str(run.directory)
    new = train(config(tmp_path / "new", initial_player=source, iterations=1))
    assert_same_player(new, run)


def test_board_heads_keep_their_owners_on_every_size():
    board = NetworkConfig(
        trunk=ConvTrunkConfig(num_blocks=1, channels=4), heads="board"
    )
    shapes = []
    for spec in ("go:5", "go:7"):
        settings, game = config("unused", game=spec, network=board), games.make(spec)
        found = jax.eval_shape(lambda: training_network(settings, game, None)[1])  # noqa: B023
        shapes.append(jax.tree.map(np.shape, found))
    assert shapes[0] == shapes[1]


def test_a_game_without_territory_refuses_the_weight(tmp_path):
    with pytest.raises(ValueError, match=r"owners_weight must be 0.*tic_tac_toe: 0.5"):
        train(config(tmp_path, game="tic_tac_toe"))
    assert not any(tmp_path.iterdir())


def test_heads_of_the_user_must_have_other_names(tmp_path):
    own = AuxiliaryHead("owners", lambda shape, rngs: None, None, None)  # pyright: ignore
    with pytest.raises(ValueError, match="different names"):
        train(config(tmp_path), modules=CustomModules(auxiliary=(own,)))


@pytest.mark.slow
def test_the_plan_of_a_run_contains_the_heads(tmp_path, monkeypatch):
    monkeypatch.setattr(forecast, "compile_phase", lambda phase, *_: phase)
    settings = config(tmp_path)
    without = dataclasses.replace(
        settings, learner=dataclasses.replace(LEARNER, owners_weight=0.0)
    )
    sizes = [sum(forecast.forecast(x).state.values()) for x in (settings, without)]
    assert sizes[0] > sizes[1]
