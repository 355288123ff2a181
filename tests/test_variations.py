"""The variations of `experiments/variations.py`, each in a tiny run."""

import json
import pathlib
import runpy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shared_programs import shared_programs

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig, Prediction
from azjax.training import (
    Batch,
    EvaluationConfig,
    Index,
    LearnerConfig,
    ReplayConfig,
    Sample,
    SelfPlayConfig,
    Targets,
    TrainConfig,
    Trajectory,
    evaluation,
    head_losses,
    plots,
    soft_result,
    train,
)

SCRIPT = pathlib.Path(__file__).parents[1] / "experiments" / "variations.py"
NAMES = runpy.run_path(str(SCRIPT))
VARIATIONS = NAMES["VARIATIONS"]


def tiny(game, directory) -> TrainConfig:
    return TrainConfig(
        game=game,
        iterations=4,
        run_dir=str(directory),
        network=NetworkConfig(
            trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
        ),
        self_play=SelfPlayConfig(num_games=8, moves_per_chunk=8, num_simulations=(2,)),
        replay=ReplayConfig(capacity=1024, min_window=960, min_positions=64),
        learner=LearnerConfig(batch_size=16, replay_ratio=1.0),
        evaluation=EvaluationConfig(num_evaluations=1, opponents=()),
    )


@pytest.fixture(scope="module")
def quick_runs():
    """Shares the self-play of runs of the same game, and skips evaluations."""
    with shared_programs(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "plot_learning", lambda *args: None)
        patch.setattr(evaluation, "shipped", lambda game: None)
        yield


@pytest.mark.parametrize(
    ("name", "game"),
    [
        ("pure_z", "tic_tac_toe"),
        ("soft_z", "tic_tac_toe"),
        ("five_steps", "tic_tac_toe"),
        ("prioritized", "tic_tac_toe"),
        ("early", "tic_tac_toe"),
        ("occupied", "connect_four"),
        ("muon", "tic_tac_toe"),
    ],
)
@pytest.mark.usefixtures("quick_runs")
def test_a_variation_learns_through_train(name, game, tmp_path):
    rows = []
    arguments = VARIATIONS[name](games.make(game))
    run = train(tiny(game, tmp_path / "run"), **arguments, on_iteration=rows.append)
    assert run.finished
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    losses = [row for row in rows if row["policy_loss"] is not None]
    assert losses
    assert all(np.isfinite(row["value_loss"]) for row in losses)
    assert all(("occupied_loss" in row) == (name == "occupied") for row in losses)
    settings = json.loads((run.directory / "config.json").read_text())
    assert settings.get("hooks", []) == [
        each for each in ("loss", "value_target", "sampler") if each in arguments
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "VARIATION is pure_z, soft_z, five_steps, .*, muon: ''"),
        (["pure", "tic_tac_toe"], "VARIATION is pure_z, .*: 'pure'"),
        (["pure_z"], "GAME is missing"),
        (["pure_z", "--minutes", "1"], "GAME is missing"),
    ],
)
def test_wrong_arguments_are_named(args, message):
    with pytest.raises(ValueError, match=message):
        NAMES["main"](args)


@pytest.mark.parametrize(
    ("options", "run_dir"),
    [
        ([], "runs/pure_z_go_5"),
        (["--run-dir", "mine"], "mine"),
        (["--run_dir=mine"], "mine"),
    ],
)
def test_the_run_directory_is_named_after_variation_and_game(
    options, run_dir, monkeypatch
):
    configs = []

    def train(config, **arguments):
        configs.append(config)

    monkeypatch.setitem(NAMES["main"].__globals__, "train", train)
    monkeypatch.setitem(NAMES["main"].__globals__, "show_run", lambda run: None)
    NAMES["main"](["pure_z", "go:5", *options, "--iterations", "2"])
    assert [config.run_dir for config in configs] == [run_dir]


def test_the_help_lists_the_variations(capsys):
    NAMES["main"](["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert "pure_z       Trains on the result of the game." in lines
    assert len([line for line in lines if line.partition(" ")[0] in VARIATIONS]) == 7


def test_soft_z_is_half_the_result():
    moves = Trajectory(
        state=None,
        action=None,
        policy=None,
        value=jnp.array([[0.5], [-0.25], [0.75]]),
        draw_probability=jnp.zeros((3, 1)),
        regret=jnp.zeros((3, 1)),
        reward=jnp.array([[0.0], [0.0], [1.0]]),
        terminated=jnp.array([[False], [False], [True]]),
    )
    value_target = VARIATIONS["soft_z"](games.make("tic_tac_toe"))["value_target"]
    assert value_target.horizon == 9
    targets = value_target.compute(moves)
    # The player of the first and third move wins.
    np.testing.assert_allclose(
        targets[:, 0, 0] - targets[:, 0, 2], [0.75, -0.625, 0.875], atol=1e-3
    )


def test_early_positions_weigh_twice_as_much():
    stones = np.zeros((2, 6, 7, 2), np.float32)
    stones[1, :3, :4, 0] = 1  # 12
    prediction = Prediction(jnp.zeros((2, 7)), jnp.zeros((2, 3)), {})
    targets = Targets(
        policy=jnp.eye(7)[:2], value=jnp.eye(3)[:2].astype(jnp.float32), auxiliary={}
    )
    batch = Batch(
        observation=jnp.asarray(stones),
        legal_action_mask=jnp.ones((2, 7), bool),
        targets=targets,
        has_ended=jnp.zeros(2, bool),
        sample=Sample(jnp.arange(2), jnp.arange(2), jnp.ones(2)),
    )
    loss = VARIATIONS["early"](games.make("connect_four"))["loss"]
    weighed = loss(prediction, batch)
    for name, head in head_losses(prediction, batch).items():
        np.testing.assert_allclose(
            weighed[name].loss, head.loss * np.array([4 / 3, 2 / 3]), rtol=1e-6
        )


def five_steps_by_definition(reward, terminated, value, draw):
    """Computes the targets of one game position by position."""
    targets = []
    for start in range(len(value) - 5):
        position, sign, result = start, 1, None
        for _ in range(5):
            if terminated[position]:
                result = np.eye(3)[1 - int(sign * reward[position])]
                break
            position, sign = position + 1, -sign
        if result is None:
            result = np.asarray(soft_result(value[position], draw[position]))[::sign]
        targets.append(result)
    return np.array(targets)


def test_five_steps_targets_follow_their_definition():
    chance = np.random.default_rng(0)
    terminated = chance.uniform(size=(40, 3)) < 0.15
    reward = np.where(terminated, chance.integers(-1, 2, terminated.shape), 0)
    value = chance.uniform(-1, 1, terminated.shape).astype(np.float32)
    draw = chance.uniform(0, 1, terminated.shape).astype(np.float32)
    value_target = VARIATIONS["five_steps"](games.make("tic_tac_toe"))["value_target"]
    played = (reward, terminated, value, draw)
    found = value_target.compute(
        Trajectory(
            state=None,
            action=None,
            policy=None,
            value=jnp.asarray(value),
            draw_probability=jnp.asarray(draw),
            regret=jnp.zeros_like(value),
            reward=jnp.asarray(reward),
            terminated=jnp.asarray(terminated),
        )
    )
    for game in range(3):
        expected = five_steps_by_definition(*(each[:, game] for each in played))
        np.testing.assert_allclose(found[: len(expected), game], expected, atol=1e-6)


def test_prioritized_sampling_follows_the_losses_and_weights_correct_it():
    sampler = VARIATIONS["prioritized"](None, alpha=1.0, beta=1.0)["sampler"]
    shape = (4, 2)
    index = Index(
        first=jnp.int32(0),
        lengths=jnp.array([3, 2]),
        is_new=jnp.ones(shape, bool),
        value_target=jnp.zeros((*shape, 3)),
        last=None,
    )
    state = sampler.prepare(sampler.init(shape), index)
    # All five eligible positions are new, and equally likely.
    np.testing.assert_array_equal(state > 0, index.is_eligible)
    losses = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0], [0.0, 0.0]])
    everywhere = jnp.divmod(jnp.arange(8), 2)
    sample = sampler.choose(state, index, jax.random.key(0), 4096)._replace(
        row=everywhere[0], slot=everywhere[1]
    )
    state = sampler.update(state, sample, losses.ravel())
    state = sampler.prepare(state, index._replace(is_new=jnp.zeros(shape, bool)))
    sample = jax.jit(sampler.choose, static_argnums=3)(
        state, index, jax.random.key(1), 4096
    )
    drawn = np.zeros(shape)
    np.add.at(drawn, (sample.row, sample.slot), 1 / 4096)
    np.testing.assert_allclose(drawn, np.asarray(losses) / 15, atol=0.04)
    weighted = np.zeros(shape)
    np.add.at(weighted, (sample.row, sample.slot), np.asarray(sample.weight) / 4096)
    np.testing.assert_allclose(weighted, np.asarray(index.is_eligible) / 5, atol=0.04)
