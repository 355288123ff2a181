import dataclasses
import json
import shutil

import chex
import jax
import numpy as np
import optax
import pytest
from flax import nnx
from training.tiny_runs import (
    TINY_NETWORK,
    assert_same_player,
    config,
    counted,
    metrics,
)
from untrained import untrained_shapes

from azjax import games, players
from azjax.networks import (
    ConvTrunkConfig,
    CustomModules,
    DenseTrunkConfig,
    NetworkConfig,
    predict,
)
from azjax.search import GumbelConfig
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    ValueTarget,
    head_losses,
    lambda_target,
    repeated_config,
    train,
)
from azjax.training import loop as module
from azjax.training.initial_player import initial_variables
from azjax.training.run import clock
from azjax.training.run.checkpoints import Checkpoints
from azjax.training.run.directory import run_id
from azjax.training.run.schedule import read_schedule

GAME = games.make("tic_tac_toe")
pytestmark = pytest.mark.usefixtures("quick_plots", "shared_programs")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_run_writes_its_files(undisturbed):
    assert undisturbed.finished
    assert names(undisturbed.directory) == [
        ".lock",
        "checkpoints",
        "config.json",
        "games",
        "metrics.jsonl",
        "player",
        "plots",
        "schedule.json",
        "tensorboard",
    ]
    assert {"5", "6"} <= set(names(undisturbed.directory / "checkpoints"))
    assert undisturbed.first["iteration"] == 0
    assert undisturbed.last["iteration"] == 6


def test_metrics_contain_each_iteration_and_evaluation_once(undisturbed):
    rows = metrics(undisturbed)
    iterations = [row for row in rows if row["kind"] == "iteration"]
    evaluations = [r["iteration"] for r in rows if r["kind"] == "evaluation"]
    assert [row["iteration"] for row in iterations] == [1, 2, 3, 4, 5, 6]
    assert evaluations == [0, 3, 6]
    assert rows[-1]["positions"] == 6 * 32
    assert rows[-1]["games"] > 0
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds)
    # Updates begin at 64 positions; from then on, every 32 positions give 16 updates.
    assert [row["updates"] for row in iterations] == [0, 2, 4, 6, 8, 10]
    assert iterations[0]["policy_loss"] is None
    assert all(row["policy_loss"] >= 0 for row in iterations[1:])
    # Every position becomes eligible.
    assert all(row["eligible_share"] is None for row in rows if row["iteration"] < 2)
    assert {row["eligible_share"] for row in rows if row["iteration"] >= 2} == {1.0}
    assert 0 < undisturbed.last["eligibility_delay"] < 9 + 4


def test_a_resumed_run_equals_an_uninterrupted_one(undisturbed, resumed):
    assert [run.finished for run in resumed] == [False, False, True]
    assert_same_player(resumed[-1], undisturbed)
    assert counted(resumed[-1]) == counted(undisturbed)
    states = [
        Checkpoints(
            run.directory / "checkpoints",
            keep=2,
            version=module.AlphaZero.state_version,
            run=run_id(run.directory),
        ).restore(fresh_state(run), pytest.fail)[0]
        for run in (undisturbed, resumed[-1])
    ]
    jax.tree.map(assert_bits_equal, *states)
    loaded = players.load_player(resumed[-1].directory)
    chex.assert_trees_all_equal(loaded.variables, resumed[-1].player.variables)


def fresh_state(run):
    trained, settings = run.player, config(run.directory)
    algorithm = module.make_algorithm(settings, trained.game, trained.network)
    return algorithm.init(trained.variables)


def assert_bits_equal(a, b):
    if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_the_player_directory_is_self_contained(undisturbed, tmp_path):
    shutil.copytree(undisturbed.directory / "player", tmp_path / "elsewhere")
    player = players.load(f"network:{tmp_path / 'elsewhere'}")
    opening = jax.tree.map(lambda leaf: np.asarray(leaf)[None], GAME.init())
    choice = players.choose(player, jax.random.key(0), opening)
    assert 0 <= int(choice.action[0]) < 9
    loaded = players.load_player(tmp_path / "elsewhere")
    chex.assert_trees_all_equal(loaded.variables, undisturbed.player.variables)


def test_restarting_a_finished_run_changes_nothing(undisturbed):
    def content():
        files = undisturbed.directory.rglob("*")
        return {
            path: path.read_bytes()
            for path in files
            if path.is_file() and "tensorboard" not in path.parts
        }

    before = content()
    again = train(config(undisturbed.directory))
    assert again.finished
    assert (again.first, again.last) == (undisturbed.first, undisturbed.last)
    assert_same_player(again, undisturbed)
    after = content()
    assert after.keys() == before.keys()
    assert [path.name for path in after if after[path] != before[path]] == []


@pytest.mark.parametrize(
    ("changes", "hooks", "message"),
    [
        ({"seed": 7}, {}, r"seed was 0, is 7\): give the same"),
        ({}, {"optimizer": optax.sgd(1e-2)}, r"optimizer was adamw, is {'state': \["),
        ({}, {"loss": head_losses}, r"hooks was None, is \['loss'\]"),
    ],
)
def test_another_configuration_is_refused_and_nothing_overwritten(
    undisturbed, changes, hooks, message
):
    def content():
        rows = (undisturbed.directory / "metrics.jsonl").read_bytes()
        return rows, names(undisturbed.directory / "checkpoints")

    before = content()
    with pytest.raises(ValueError, match=message) as error:
        train(config(undisturbed.directory, **changes), **hooks)
    assert "\n" not in str(error.value)
    assert content() == before


def test_notes_can_change_when_a_run_is_continued(undisturbed, tmp_path):
    directory = tmp_path / "copy"
    shutil.copytree(undisturbed.directory, directory)
    settings = config(directory, notes="looked at again")
    assert_same_player(train(settings), undisturbed)
    content = json.loads((directory / "config.json").read_text())
    assert content["notes"] == "looked at again"


def test_a_replay_too_small_for_the_value_target_is_refused(tmp_path):
    target = ValueTarget(lambda_target(1.0, 9).compute, horizon=100)
    with pytest.raises(ValueError, match="100 moves have followed"):
        train(config(tmp_path / "run"), value_target=target)
    assert not (tmp_path / "run").exists()


def test_a_run_continues_only_with_its_own_optimizer(undisturbed, tmp_path):
    """Whose learning rate is unknown."""
    once = EvaluationConfig(
        num_evaluations=1, num_positions=32, num_simulations=2, opponents=()
    )
    rare = CheckpointConfig()
    settings = config(tmp_path / "lion", iterations=2, evaluation=once, checkpoint=rare)
    run = train(settings, optimizer=optax.lion(1e-4))
    rates = [
        [row["learning_rate"] for row in metrics(each) if row["kind"] == "iteration"]
        for each in (run, undisturbed)
    ]
    assert rates[0] == [None, None]
    assert None not in rates[1]
    with pytest.raises(ValueError, match=r"optimizer\.constants was .*-0\.0001"):
        train(settings, optimizer=optax.lion(1e-3))
    assert_same_player(train(settings, optimizer=optax.lion(1e-4)), run)


def test_a_run_starts_with_the_weights_of_the_initial_player(undisturbed, tmp_path):
    settings = config(
        tmp_path / "new", initial_player=str(undisturbed.directory), iterations=1
    )
    run = train(settings)
    for name in ("network_mistakes", "search_mistakes"):
        assert run.first[name] == undisturbed.last[name]
    recorded = json.loads((run.directory / "config.json").read_text())
    assert recorded["initial_player"] == str(undisturbed.directory)
    # A continued run does not need it.
    train(dataclasses.replace(settings, initial_player=None))


def saved_player(directory, game, config):
    """Writes a player whose weights are all different from 0; returns it."""
    network, shapes = untrained_shapes(game, config)
    chance = np.random.default_rng(0)
    variables = jax.tree.map(
        lambda leaf: chance.normal(0.1, 0.3, leaf.shape).astype(leaf.dtype), shapes
    )
    player = players.TrainedPlayer(game, network, variables, config, GumbelConfig(), 0)
    players.save_player(directory, player)
    return player


def dense(input_skip=False, line_length=0):
    trunk = dataclasses.replace(TINY_NETWORK.trunk, input_skip=input_skip)
    return NetworkConfig(trunk, line_length=line_length)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"input_skip": True, "line_length": 3}),
        ({"line_length": 3}, {"input_skip": True, "line_length": 3}),
        ({"input_skip": True}, {"input_skip": True, "line_length": 3}),
    ],
)
def test_new_inputs_do_not_change_what_the_initial_player_computes(
    before, after, tmp_path
):
    player = saved_player(tmp_path / "player", GAME, dense(**before))
    wider, shapes = untrained_shapes(GAME, dense(**after))
    settings = config(
        "unused", network=dense(**after), initial_player=str(tmp_path / "player")
    )
    found = initial_variables(settings, GAME, None, shapes)
    observation = np.random.default_rng(2).random((8, 3, 3, 2)) < 0.4
    observation = observation.astype(np.float32)
    outputs = [
        jax.jit(predict)(network, variables, observation)
        for network, variables in ((player.network, player.variables), (wider, found))
    ]
    chex.assert_trees_all_close(*outputs, rtol=1e-5, atol=1e-5)


def test_a_run_in_bfloat16_starts_with_a_player_in_float32(undisturbed, tmp_path):
    player = players.load_run(undisturbed.directory)
    settings = config(
        tmp_path / "new",
        initial_player=str(undisturbed.directory),
        network=dataclasses.replace(player.config, dtype="bfloat16"),
    )
    variables = initial_variables(settings, player.game, None, player.variables)
    chex.assert_trees_all_equal(variables, player.variables)


BOARD_HEADS = NetworkConfig(
    trunk=ConvTrunkConfig(num_blocks=1, channels=4), heads="board"
)


def test_board_heads_continue_on_another_board_size(tmp_path):
    player = saved_player(tmp_path, games.make("hex:3"), BOARD_HEADS)
    settings = config("unused", network=BOARD_HEADS, initial_player=str(tmp_path))
    game, other = games.make("hex:4"), games.make("hex:4,swap=True")
    _, shapes = untrained_shapes(game, BOARD_HEADS)
    found = initial_variables(settings, game, None, shapes)
    chex.assert_trees_all_equal(found, player.variables)
    _, shapes = untrained_shapes(other, BOARD_HEADS)
    with pytest.raises(ValueError, match="has other shapes than one for hex:4,swap"):
        initial_variables(settings, other, None, shapes)


@pytest.mark.parametrize(
    ("saved", "changes", "messages"),
    [
        (
            {},
            {"network": NetworkConfig(DenseTrunkConfig(width=8, num_blocks=1))},
            ["network.trunk.width is 16 there and 8 here"],
        ),
        (
            {},
            {"network": BOARD_HEADS},
            ["name is dense there and conv here", "network.trunk.width is 16 there;"],
        ),
        ({}, {"game": "hex:3"}, ["is for tic_tac_toe, not for hex:"]),
        ({"input_skip": True}, {}, ["input_skip is True there and False here"]),
        ({"line_length": 3}, {}, ["line_length is 3 there and 0 here"]),
    ],
)
def test_an_initial_player_of_another_network_or_game_is_refused(
    tmp_path, saved, changes, messages
):
    saved_player(tmp_path / "player", GAME, dense(**saved))
    source = str(tmp_path / "player")
    with pytest.raises(ValueError, match="the player in") as error:
        train(config(tmp_path / "new", initial_player=source, **changes))
    assert all(message in str(error.value) for message in messages)
    assert not (tmp_path / "new").exists()


def test_a_run_with_a_damaged_checkpoint_gives_the_same_result(
    undisturbed, tmp_path, capsys
):
    directory = tmp_path / "copy"
    shutil.copytree(undisturbed.directory, directory)
    for path in (directory / "checkpoints" / "6" / "state").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    run = train(config(directory))
    out = capsys.readouterr().out
    assert "checkpoint 6 is damaged and was set aside as 6.damaged" in out
    assert "continuing after iteration 5" in out
    assert_same_player(run, undisturbed)
    assert counted(run) == counted(undisturbed)
    assert {"5", "6", "6.damaged"} <= set(names(directory / "checkpoints"))


class Trunk(nnx.Module):
    def __init__(self, observation_shape, rngs):
        height, width, planes = observation_shape
        self.linear = nnx.Linear(height * width * planes, 12, rngs=rngs)
        self.norm = nnx.BatchNorm(12, rngs=rngs)

    def __call__(self, observation):
        features = observation.reshape(observation.shape[0], -1)
        return nnx.relu(self.norm(self.linear(features)))


class Ticking:
    """A clock that advances at every call."""

    seconds, step = 0.0, 0.5

    def now(self):
        self.seconds += self.step
        return clock.Moment(self.seconds, 0.0)


def test_a_run_of_minutes_is_reproduced_bit_for_bit(tmp_path, monkeypatch):
    rare = CheckpointConfig(every_minutes=10.0)
    settings = config(tmp_path / "run", iterations=None, minutes=0.5, checkpoint=rare)
    ticking = Ticking()
    monkeypatch.setattr(clock, "now", ticking.now)
    run = train(settings)
    schedule = read_schedule(run.directory)
    assert run.finished
    assert schedule.end == run.last["iteration"] > 4
    assert len(schedule.entries) > 2
    ticking.step = 3.0  # a slower device
    again = train(repeated_config(run.directory, run_dir=str(tmp_path / "again")))
    assert_same_player(again, run)
    assert counted(again) == counted(run)


@pytest.mark.slow
def test_custom_parts_and_optimizer_learn_and_load(tmp_path):
    parts = CustomModules(trunk=Trunk)
    run = train(
        config(tmp_path / "run", iterations=3),
        modules=parts,
        optimizer=optax.adam(1e-3),
    )
    assert run.finished
    assert run.last["updates"] == 4
    assert run.player.has_custom_modules
    loaded = players.load_player(run.directory, parts)
    jax.tree.map(np.testing.assert_array_equal, loaded.variables, run.player.variables)
    with pytest.raises(ValueError, match="modules of the user's own"):
        players.load_player(run.directory)
