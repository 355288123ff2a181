"""The variations of `experiments/variations.py`, each in a tiny run."""

import json
import pathlib
import runpy
from typing import NamedTuple

import jax
import numpy as np
import pytest
from compiled_games import play
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
    soft_result,
    train,
)

SCRIPT = pathlib.Path(__file__).parents[1] / "experiments" / "variations.py"
NAMES = runpy.run_path(str(SCRIPT))
VARIATIONS = NAMES["VARIATIONS"]


@pytest.fixture(
    scope="module",
    params=[
        ("soft_z", "prioritized", "occupied", "muon"),
        ("five_steps", "early"),
    ],
    ids=" ".join,
)
def learned(request, tmp_path_factory):
    """The names of variations, and the metrics of a tiny run with all of them."""
    rows, arguments = [], {}
    for name in request.param:
        arguments |= VARIATIONS[name](games.make("tic_tac_toe"))
    config = TrainConfig(
        game="tic_tac_toe",
        iterations=3,
        run_dir=str(tmp_path_factory.mktemp("run") / "run"),
        network=NetworkConfig(
            trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
        ),
        self_play=SelfPlayConfig(num_games=8, moves_per_chunk=8, num_simulations=(2,)),
        replay=ReplayConfig(capacity=1024, min_window=960, min_positions=64),
        learner=LearnerConfig(batch_size=16, replay_ratio=1.0),
        evaluation=EvaluationConfig(num_evaluations=1, opponents=()),
    )
    with shared_programs(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "shipped", lambda game: None)
        run = train(config, **arguments, on_iteration=rows.append)
    assert run.finished
    settings = json.loads((run.directory / "config.json").read_text())
    assert settings.get("hooks", []) == [
        each for each in ("loss", "value_target", "sampler") if each in arguments
    ]
    return request.param, rows


@pytest.mark.slow
def test_variations_learn_together(learned):
    names, rows = learned
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    losses = [row for row in rows if row["policy_loss"] is not None]
    assert losses
    assert all(np.isfinite(row["value_loss"]) for row in losses)
    assert all(("occupied_loss" in row) == ("occupied" in names) for row in losses)


def test_the_run_directory_is_named_after_variation_and_game(monkeypatch):
    configs = []

    def train(config, **arguments):
        configs.append(config)

    monkeypatch.setitem(NAMES["main"].__globals__, "train", train)
    monkeypatch.setitem(NAMES["main"].__globals__, "show_run", lambda run: None)
    for options in [], ["--run-dir", "mine"], ["--run_dir=mine"]:
        NAMES["main"](["pure_z", "go:5", *options, "--iterations", "2"])
    found = [config.run_dir for config in configs]
    assert found == ["runs/pure_z_go_5", "mine", "mine"]


def test_the_help_lists_the_variations_and_wrong_arguments_are_named(capsys):
    for args, message in (
        ("", "VARIATION is pure_z, soft_z, five_steps, .*, muon: ''"),
        ("pure tic_tac_toe", "VARIATION is pure_z, .*: 'pure'"),
        ("pure_z", "GAME is missing"),
        ("pure_z --minutes 1", "GAME is missing"),
    ):
        with pytest.raises(ValueError, match=message):
            NAMES["main"](args.split())
    NAMES["main"](["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert "pure_z       Trains on the result of the game." in lines
    assert len([line for line in lines if line.partition(" ")[0] in VARIATIONS]) == 7


class Players(NamedTuple):
    current_player: np.ndarray


def targets_of(name, value, draw, reward, terminated, *, player=None):
    """Returns a variation's value targets of moves; by default the players
    alternate."""
    if player is None:
        player = np.arange(len(value))[:, None] % 2 + np.zeros_like(value, int)
    moves = Trajectory(
        state=Players(player),
        action=None,
        policy=None,
        value=np.asarray(value, np.float32),
        draw_probability=np.asarray(draw, np.float32),
        regret=np.zeros_like(value, np.float32),
        reward=np.asarray(reward, np.float32),
        terminated=np.asarray(terminated),
    )
    value_target = VARIATIONS[name](games.make("tic_tac_toe"))["value_target"]
    return np.asarray(jax.jit(value_target.compute)(moves))


def test_the_target_is_the_result_or_half_of_it():
    moves = {
        "value": [[0.5], [-0.25], [0.75]],
        "draw": np.zeros((3, 1)),
        "reward": [[0], [0], [1]],
        "terminated": [[False], [False], [True]],
    }
    # The player of the first and third move wins.
    for name, expected in [("pure_z", [1, -1, 1]), ("soft_z", [0.75, -0.625, 0.875])]:
        targets = targets_of(name, **moves)
        np.testing.assert_allclose(
            targets[:, 0, 0] - targets[:, 0, 2], expected, atol=1e-3
        )


def test_five_steps_targets_follow_their_definition():
    chance = np.random.default_rng(0)
    terminated = chance.uniform(size=(40, 3)) < 0.15
    reward = np.where(terminated, chance.integers(-1, 2, terminated.shape), 0)
    value = chance.uniform(-1, 1, terminated.shape).astype(np.float32)
    draw = chance.uniform(0, 1, terminated.shape).astype(np.float32)
    player = chance.integers(0, 2, terminated.shape)
    found = targets_of("five_steps", value, draw, reward, terminated, player=player)
    searched = np.asarray(jax.jit(soft_result)(value, draw))
    for game in range(3):
        for start in range(35):
            position, sign, result = start, 1, None
            for _ in range(5):
                if terminated[position, game]:
                    result = np.eye(3)[1 - int(sign * reward[position, game])]
                    break
                position += 1
                is_same = player[position, game] == player[start, game]
                sign = 1 if is_same else -1
            if result is None:
                result = searched[position, game, ::sign]
            np.testing.assert_allclose(found[start, game], result, atol=1e-6)


def test_early_positions_weigh_twice_as_much():
    stones = np.zeros((2, 6, 7, 2), np.float32)
    stones[1, :3, :4, 0] = 1  # 12
    prediction = Prediction(np.zeros((2, 7)), np.zeros((2, 3)), {})
    batch = Batch(
        observation=stones,
        legal_action_mask=np.ones((2, 7), bool),
        targets=Targets(policy=np.eye(7)[:2], value=np.eye(3)[:2], auxiliary={}),
        has_ended=np.zeros(2, bool),
        sample=Sample(np.arange(2), np.arange(2), np.ones(2)),
    )
    loss = VARIATIONS["early"](games.make("connect_four"))["loss"]
    weighed, heads = jax.jit(lambda *args: (loss(*args), head_losses(*args)))(
        prediction, batch
    )
    for name, head in heads.items():
        np.testing.assert_allclose(
            weighed[name].loss, head.loss * np.array([4 / 3, 2 / 3]), rtol=1e-6
        )


def test_occupied_cells_of_the_final_board_are_predicted():
    game = games.make("connect_four")
    (head,) = VARIATIONS["occupied"](game)["modules"].auxiliary
    final = play(game, "1 1 2 7")

    @jax.jit
    def compute(final):
        target = head.target(game.init(), final)[None]
        mirrored = head.transform(game.symmetries[1], target)
        logits = 100 * target.reshape(1, -1) - 50
        return target[0], mirrored[0], [head.loss(x, target) for x in (logits, -logits)]

    target, mirrored, (right, wrong) = jax.device_get(compute(final))
    expected = np.zeros((6, 7))
    expected[-1, [0, 1, 6]] = expected[-2, 0] = 1
    np.testing.assert_array_equal(target, expected)
    np.testing.assert_array_equal(mirrored, expected[:, ::-1])
    assert right < 1e-6
    np.testing.assert_allclose(wrong, [50], rtol=1e-5)


def test_prioritized_sampling_follows_the_losses_and_weights_correct_it():
    sampler = VARIATIONS["prioritized"](None, alpha=1.0, beta=1.0)["sampler"]
    losses = np.array([[1, 2], [3, 4], [5, 0], [0, 0]], np.float32)
    shape = losses.shape
    index = Index(
        first=np.int32(0),
        lengths=np.array([3, 2]),
        is_new=np.ones(shape, bool),
        value_target=np.zeros((*shape, 3)),
        last=None,
    )

    @jax.jit
    def draw(index, first_key, second_key):
        first = sampler.prepare(sampler.init(shape), index)
        sample = sampler.choose(first, index, first_key, 4096)
        row, slot = np.divmod(np.arange(8), 2)
        everywhere = sample._replace(row=row, slot=slot)
        state = sampler.update(first, everywhere, losses.ravel())
        old = index._replace(is_new=np.zeros(shape, bool))
        state = sampler.prepare(state, old)
        sample = sampler.choose(state, old, second_key, 4096)
        return first, index.is_eligible, sample

    first, is_eligible, sample = draw(index, *jax.random.split(jax.random.key(0)))
    # All five eligible positions are new, and equally likely.
    np.testing.assert_array_equal(first, is_eligible)
    drawn, weighted = np.zeros(shape), np.zeros(shape)
    np.add.at(drawn, (sample.row, sample.slot), 1 / 4096)
    np.testing.assert_allclose(drawn, losses / 15, atol=0.04)
    np.add.at(weighted, (sample.row, sample.slot), np.asarray(sample.weight) / 4096)
    np.testing.assert_allclose(weighted, np.asarray(is_eligible) / 5, atol=0.04)
