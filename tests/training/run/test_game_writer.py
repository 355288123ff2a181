import shutil

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest
from training.tiny_runs import assert_same_player, config, metrics, stop_after

from azjax import games
from azjax.data import GAMES, files, game_files, unpack_states
from azjax.games.host import first_state
from azjax.players import first_network
from azjax.search import AlphaZeroConfig
from azjax.training import DataConfig, ReplayConfig, SelfPlayConfig, train
from azjax.training.alphazero import make_algorithm, train_iteration
from azjax.training.run.game_writer import GameWriter, rows_of
from azjax.training.self_play import Trajectory
from azjax.training.stored_policy import StoredPolicy

GAME = games.make("tic_tac_toe")
pytestmark = pytest.mark.usefixtures("quick_plots", "shared_programs")


def table(directory):
    """Returns the kept positions as a dictionary of columns."""
    return pq.read_table(directory / GAMES).to_pydict()


def positions(packed):
    """Returns the positions of packed ones."""
    content = np.frombuffer(b"".join(packed), np.uint8)
    return unpack_states(GAME, content.reshape(len(packed), -1))


def test_every_position_of_a_run_is_kept_once(undisturbed):
    rows = table(undisturbed.directory)
    assert len(rows["game"]) == 6 * 8 * 4
    assert len(set(zip(rows["game"], rows["ply"], strict=True))) == 6 * 8 * 4
    assert sorted(set(rows["iteration"])) == [1, 2, 3, 4, 5, 6]


def test_the_number_of_ended_games_is_that_of_the_metrics(undisturbed):
    ended = sum(table(undisturbed.directory)["terminated"])
    assert ended == metrics(undisturbed)[-1]["games"]


def test_the_moves_of_a_game_lead_from_each_position_to_the_next(undisturbed):
    rows = table(undisturbed.directory)
    order = np.lexsort((rows["ply"], rows["game"]))
    column = {name: np.array(rows[name])[order] for name in ("game", "ply", "move")}
    states = positions([rows["state"][index] for index in order])
    after = jax.jit(jax.vmap(GAME.step))(states, column["move"].astype(np.int32))
    states, after = jax.device_get((states, after))
    follows = column["game"][1:] == column["game"][:-1]
    assert (np.diff(column["ply"])[follows] == 1).all()
    for leaf, later in zip(
        jax.tree.leaves(after), jax.tree.leaves(states), strict=True
    ):
        np.testing.assert_array_equal(leaf[:-1][follows], later[1:][follows])
    ended = np.array(rows["terminated"])[order]
    np.testing.assert_array_equal(after.terminated, ended)


def test_a_policy_target_is_a_distribution_over_legal_moves(undisturbed):
    rows = table(undisturbed.directory)
    states = positions(rows["state"])
    legal = np.asarray(jax.jit(jax.vmap(GAME.legal_action_mask))(states))
    entries = zip(rows["policy_actions"], rows["policy_probabilities"], strict=True)
    for mask, (actions, probabilities) in zip(legal, entries, strict=True):
        assert mask[actions].all()
        assert abs(sum(probabilities) - 1) < 0.01


def assert_values_are_those_of_the_search(rows):
    """The search's value of a position is the mean of those of the visited actions."""
    columns = ("policy_probabilities", "policy_values", "value")
    for probabilities, values, value in zip(*map(rows.get, columns), strict=True):
        visited = [index for index, each in enumerate(values) if each is not None]
        if values:
            weights = np.array(probabilities)[visited]
            mean = np.average(np.array(values)[visited], weights=weights)
            assert mean == pytest.approx(value, abs=3e-3)


def test_visited_actions_have_the_values_of_the_search(undisturbed):
    rows = table(undisturbed.directory)
    assert_values_are_those_of_the_search(rows)
    assert any(None in values for values in rows["policy_values"])


@pytest.mark.slow
def test_sparse_policies_of_several_lanes_have_the_values_of_the_search(tmp_path):
    settings = config(
        tmp_path / "run",
        search=AlphaZeroConfig(),  # its policy is 0 without visits
        self_play=SelfPlayConfig(
            num_games=8,
            moves_per_chunk=4,
            num_simulations=(4,),
            full_search_fraction=0.5,
            fast_simulations=2,
        ),
        replay=ReplayConfig(
            capacity=128, min_window=104, min_positions=64, policy_entries=5
        ),
    )
    network, variables = first_network(0, GAME, settings.network)
    algorithm = make_algorithm(settings, GAME, network, devices=jax.devices()[:1])
    keeper = GameWriter(settings, GAME)
    with keeper.opened(settings.directory, "a1", 0):
        train_iteration(
            algorithm, settings, algorithm.init(variables), 0.0, game_writer=keeper
        )
        keeper.flush()
    rows = table(settings.directory)
    assert_values_are_those_of_the_search(rows)
    is_full = np.array([len(values) > 0 for values in rows["policy_values"]])
    np.testing.assert_array_equal(is_full, np.array(rows["simulations"]) == 4)
    assert is_full.sum() == len(is_full) / 2
    assert not any(None in values for values in rows["policy_values"])


def test_training_is_the_same_without_keeping_games(resumed, tmp_path):
    settings = config(tmp_path / "run", data=DataConfig(keep_games=False))
    without = train(settings, on_iteration=stop_after(2))
    assert not (without.directory / GAMES).exists()
    assert_same_player(resumed[0], without)


def test_a_resumed_run_keeps_the_same_games_as_an_undisturbed_one(undisturbed, resumed):
    rows, expected = table(resumed[-1].directory), table(undisturbed.directory)
    assert len(set(rows.pop("run"))) == 1
    del expected["run"]
    assert rows == expected
    assert not list((resumed[-1].directory / GAMES).glob(".*.77"))


def test_games_of_another_game_in_the_directory_are_not_overwritten(
    undisturbed, tmp_path
):
    directory = tmp_path / "run"
    shutil.copytree(undisturbed.directory, directory)
    newest = game_files(directory / GAMES)[-1].path
    newest.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is no Parquet file, or damaged"):
        train(config(directory, iterations=7))
    assert newest.read_bytes() == b"something else"
    other = GameWriter(config(directory), GAME)
    newest.unlink()
    with (
        pytest.raises(ValueError, match="parquet is of another run: move it away"),
        other.opened(directory, "b2", 0),
    ):
        pass
    assert game_files(directory / GAMES)


def test_a_fast_search_has_no_policy_target_and_its_own_simulations():
    settings = config(
        "run",
        self_play=SelfPlayConfig(
            num_games=8,
            moves_per_chunk=2,
            num_simulations=(20,),
            full_search_fraction=0.5,
            fast_simulations=5,
        ),
    )
    shape = (1, 2, 1)
    zeros = np.zeros(shape, np.float32)
    state = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (*shape, *leaf.shape)), first_state(GAME)
    )
    probability = np.zeros((*shape, 9), np.float16)
    probability[0, 1, 0, [2, 7]] = 0.25, 0.75
    policy_values = np.full((*shape, 9), -np.inf, np.float16)
    policy_values[0, 1, 0, [1, 7]] = 0.5, -0.5
    trajectory = Trajectory(
        state=state,
        action=np.zeros(shape, np.uint8),
        policy=StoredPolicy(probability, None),
        value=zeros,
        draw_probability=zeros,
        regret=zeros,
        reward=zeros,
        terminated=np.array([[[True], [False]]]),
    )
    ply = np.array([[4]], np.int32)
    rows = rows_of(settings, 3, 20, np.array([5]), ply, trajectory, policy_values)
    assert rows.simulations.tolist() == [5, 20]
    assert rows.policy_counts.tolist() == [0, 2]
    assert rows.policy_actions.tolist() == [2, 7]
    np.testing.assert_array_equal(rows.policy_values, [np.nan, -0.5])
    # Moves 4 and 5 of slot 5; the first game began at move 0.
    assert rows.ply.tolist() == [4, 0]
    assert rows.game.tolist() == [0 * 8 + 5, 5 * 8 + 5]


def test_games_that_cannot_be_written_do_not_stop_the_run(
    resumed, tmp_path, monkeypatch, capsys
):
    def full(directory, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace_file", full)
    run = train(config(tmp_path / "run"), on_iteration=stop_after(2))
    out = capsys.readouterr().out
    assert out.count("the games are not kept from here on, because they cannot be") == 1
    assert "No space left on device" in out
    assert_same_player(resumed[0], run)
