import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from training.stopped_runs import stopping_after

from azjax import games, players
from azjax.networks import (
    AuxiliaryHead,
    ConvTrunkConfig,
    DenseTrunkConfig,
    NetworkConfig,
    Parts,
)
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    load_config,
    train,
)
from azjax.training.forecast import forecast
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
        "run_dir": str(directory),
        "network": NetworkConfig(
            trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
        ),
        "self_play": SelfPlayConfig(
            num_games=8, moves_per_chunk=4, num_simulations=(2,), temperature_moves=2
        ),
        "replay": ReplayConfig(capacity=512, min_window=288, min_positions=64),
        "learner": LEARNER,
        "evaluation": EvaluationConfig(
            num_evaluations=1, num_positions=32, num_simulations=2, num_games=4
        ),
        "checkpoint": CheckpointConfig(every_minutes=0.0),
    }
    return TrainConfig(**settings | changes)


def rows(run):
    lines = (run.directory / "metrics.jsonl").read_text().splitlines()
    found = map(json.loads, lines)
    return [row for row in found if row.get("policy_loss") is not None]


def after(game, *moves):
    state = game.init()
    for text in moves:
        state = game.step(state, jnp.int32(game.text_to_action(state, text)))
    return state


def targets(game, state, final):
    return [head.target(state, final) for head in territory_heads(game, 1.0)]


def wall():
    """Black owns the columns a and b, white d and e, nobody the column c."""
    moves = [f"{column}{row}" for row in range(1, 6) for column in "bd"]
    return after(GO, *moves)


def test_the_owners_are_those_of_the_player_to_move():
    final = wall()
    black, white = GO.init(), after(GO, "a1")
    expected = np.tile([1.0, 1.0, 0.0, -1.0, -1.0], (5, 1))
    owners, margin = targets(GO, black, final)
    np.testing.assert_array_equal(owners, expected)
    assert margin == 0
    np.testing.assert_array_equal(targets(GO, white, final)[0], -expected)


def test_the_margin_is_a_fraction_of_the_cells():
    final = after(GO, "c3", "pass", "pass")
    assert targets(GO, GO.init(), final)[1] == 1
    assert targets(GO, after(GO, "a1"), final)[1] == -1


def test_the_owners_of_othello_are_its_discs():
    game = games.make("othello")
    state = after(game, "d3")
    owners, margin = targets(game, state, state)  # white is to move
    assert [owners[2, 3], owners[3, 3], owners[3, 4], owners[0, 0]] == [-1, -1, -1, 0]
    assert owners[4, 4] == 1
    assert margin == (1 - 4) / 64


@pytest.mark.parametrize("spec", ["go:5", "othello"])
def test_owners_move_with_the_symmetries(spec):
    game = games.make(spec)
    head, _ = territory_heads(game, 1.0)
    state = game.init()
    for action in (game.legal_action_mask(state).argmax(), 9):
        state = game.step(state, jnp.int32(action))
    owners = head.target(state, state)
    planes = game.observe(state)
    for symmetry in game.symmetries:
        image = symmetry.observation(planes)
        # Where nobody has territory yet, the owners are those of the stones.
        stones = np.array(image[..., 0] - image[..., 1])
        moved = np.array(head.transform(symmetry, owners[None])[0])
        np.testing.assert_array_equal(moved[stones != 0], stones[stones != 0])


@pytest.mark.parametrize("features_shape", [(5, 5, 7), (12,)])
def test_the_heads_fit_the_features(features_shape):
    features = jax.random.normal(jax.random.key(0), (3, *features_shape))
    shapes = [
        head.make(features_shape, nnx.Rngs(0))(features).shape
        for head in territory_heads(GO, 1.0)
    ]
    assert shapes == [(3, 5, 5), (3,)]


def test_the_owners_loss_is_the_mean_cross_entropy_of_the_cells():
    head, margin = territory_heads(GO, 0.5)
    owners = jnp.zeros((2, 5, 5)).at[0].set(1.0)
    loss = head.loss(jnp.full((2, 5, 5), 2.0), owners)
    won = np.log1p(np.exp(-2.0))
    np.testing.assert_allclose(loss, [won, won + 1.0], rtol=1e-6)
    assert head.weight == margin.weight == 0.5
    np.testing.assert_allclose(
        margin.loss(jnp.array([0.5, 3.0]), jnp.array([0.0, 1.0])), [0.125, 1.5]
    )


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


def test_a_run_learns_territory_and_its_player_has_no_heads_of_it(run):
    assert rows(run)
    assert all(row["owners_loss"] > 0 and row["margin_loss"] > 0 for row in rows(run))
    loaded = players.load_player(run.directory)
    assert not loaded.has_own_parts
    assert "auxiliary" not in loaded.variables.params
    jax.tree.map(np.testing.assert_array_equal, loaded.variables, run.player.variables)


def test_a_stopped_run_with_territory_heads_goes_on_exactly(run, tmp_path):
    with stopping_after(3):
        stopped = train(config(tmp_path / "go"))
    assert not stopped.finished
    continued = train(load_config(stopped.directory))
    assert continued.finished
    losses = [[row["owners_loss"] for row in rows(each)] for each in (run, continued)]
    assert losses[0] == losses[1]
    jax.tree.map(
        np.testing.assert_array_equal, continued.player.variables, run.player.variables
    )


def test_a_run_with_territory_heads_starts_from_a_player_without(run, tmp_path):
    source = str(run.directory)
    new = train(config(tmp_path / "new", initial_player=source, iterations=1))
    jax.tree.map(
        np.testing.assert_array_equal, new.player.variables, run.player.variables
    )


def test_board_heads_keep_their_owners_on_every_size():
    board = NetworkConfig(
        trunk=ConvTrunkConfig(num_blocks=1, channels=4), heads="board"
    )
    shapes = []
    for spec in ("go:5", "go:7"):
        settings = config("unused", game=spec, network=board)
        _, variables, _ = training_network(settings, games.make(spec), None)
        shapes.append(jax.tree.map(np.shape, variables))
    assert shapes[0] == shapes[1]


def test_a_game_without_territory_refuses_the_weight(tmp_path):
    with pytest.raises(ValueError, match=r"owners_weight must be 0.*tic_tac_toe: 0.5"):
        train(config(tmp_path, game="tic_tac_toe"))
    assert not any(tmp_path.iterdir())


def test_heads_of_the_user_must_have_other_names(tmp_path):
    own = AuxiliaryHead("owners", lambda shape, rngs: None, None, None)  # pyright: ignore
    with pytest.raises(ValueError, match="different names"):
        train(config(tmp_path), parts=Parts(auxiliary=(own,)))


@pytest.mark.slow
def test_the_plan_of_a_run_contains_the_heads(tmp_path):
    settings = config(tmp_path)
    without = dataclasses.replace(
        settings, learner=dataclasses.replace(LEARNER, owners_weight=0.0)
    )
    sizes = [sum(forecast(each).state.values()) for each in (settings, without)]
    assert sizes[0] > sizes[1]
