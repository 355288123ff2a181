import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest
from training.tiny_runs import assert_same_player, config, metrics, stop_after
from untrained import untrained

from azjax import games
from azjax.data import GAMES
from azjax.networks import Network, Variables
from azjax.training import (
    CheckpointConfig,
    Games,
    SelfPlayConfig,
    TrainConfig,
    Trajectory,
    loop,
    train,
    train_iteration,
)
from azjax.training.analysis.forecast import phases
from azjax.training.game_reader import GameReader
from azjax.training.lanes import abstract_state
from azjax.training.memory import required_memory

GAME = games.make("tic_tac_toe")
pytestmark = pytest.mark.usefixtures("quick_plots", "shared_programs")


def half_stored(directory, source, **changes):
    """Returns the settings of a run with stored games in half of its slots: two of the
    four in each of two lanes."""
    settings = {"learn_from": (str(source),), "stored_fraction": 0.5}
    once = dataclasses.replace(config("unused").evaluation, num_evaluations=1)
    settings |= {"evaluation": once, "checkpoint": CheckpointConfig()}
    return config(directory, **settings | changes)


@pytest.fixture(scope="module")
def mixed(undisturbed, tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "mixed"
    return train(half_stored(directory, undisturbed.directory))


class Made(NamedTuple):
    """The parts of a run that `half_stored` describes."""

    settings: TrainConfig
    network: Network
    variables: Variables
    algorithm: Any


@pytest.fixture(scope="module")
def made(undisturbed):
    settings = half_stored("unused", undisturbed.directory)
    network, variables = untrained(GAME, settings.network)
    algorithm = loop.make_algorithm(settings, GAME, network)
    return Made(settings, network, variables, algorithm)


class FirstChunk(NamedTuple):
    """The first chunk of a run.

    games: that go on after it.
    chunk: in the replay, leaves `[L, T, B / L, ...]`.
    metrics: of the iteration.
    read: the stored part of the chunk.
    counts: its metrics.
    sizes: numbers of compiled programs of self-play and of the insertion after each of
        three iterations.
    """

    games: Games
    chunk: Trajectory
    metrics: dict[str, Any]
    read: Trajectory
    counts: dict[str, Any]
    sizes: list[list[int]]


@pytest.fixture(scope="module")
def first_chunk(made):
    settings, algorithm = made.settings, made.algorithm
    stored = GameReader(settings, GAME, algorithm.lanes)
    read, counts = GameReader(settings, GAME, algorithm.lanes).chunk()
    state, found, sizes = algorithm.init(made.variables), None, []
    for _ in range(3):
        state, row = train_iteration(
            algorithm, settings, state, 0.0, game_reader=stored
        )
        found = found or jax.device_get((state.games, state.replay.chunk, row))
        programs = (*algorithm.self_play._jitted.values(), algorithm.insert)
        sizes.append([program._cache_size() for program in programs])
    following, chunk, row = found
    num_moves = settings.self_play.moves_per_chunk
    chunk = jax.tree.map(lambda leaf: leaf[:, :num_moves], chunk)
    return FirstChunk(following, chunk, row, jax.device_get(read), counts, sizes)


@pytest.mark.parametrize(
    ("num_games", "fraction", "stored"),
    [(32, 0.25, 8), (32, 0.5, 16), (32, 0.3, 8), (64, 0.3, 16), (32, 1.0, 32)],
)
def test_each_lane_gets_the_same_whole_number_of_stored_slots(
    num_games, fraction, stored
):
    settings = config(
        "unused",
        num_lanes=8,
        learn_from=("elsewhere",),
        stored_fraction=fraction,
        self_play=SelfPlayConfig(num_games=num_games, moves_per_chunk=4),
        replay=dataclasses.replace(
            config("unused").replay, capacity=1024, min_window=1024
        ),
    )
    assert settings.stored_slots == stored
    assert settings.played_slots == num_games - stored


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({"stored_fraction": value}, "stored_fraction must be a number > 0 and <=")
            for value in (0, -0.5, 1.5, float("nan"), True)
        ),
        ({"learn_from": ()}, r"must be 1 without learn_from: 0\.5"),
        ({"num_lanes": 8}, r"a part of the slots of each lane.* 0\.5 of 1 .* is 0"),
        ({"stored_fraction": 0.1}, r"a part of the slots of .* 0\.1 of 4 .* is 0"),
        ({"stored_fraction": 0.9}, "a part of the slots of each lane.* is 4"),
    ],
)
def test_each_lane_must_have_slots_of_both_kinds(changes, message):
    with pytest.raises(ValueError, match=message):
        half_stored("unused", "elsewhere", **changes)
    # Without stored games, self-play fills all slots.
    assert (config("unused").played_slots, config("unused").stored_slots) == (8, 0)


def test_the_last_slots_of_each_lane_hold_the_stored_games(first_chunk):
    last = jax.tree.map(lambda leaf: leaf[:, :, 2:], first_chunk.chunk)
    jax.tree.map(np.testing.assert_array_equal, last, first_chunk.read)


def test_the_first_slots_of_each_lane_hold_games_that_self_play_continues(first_chunk):
    assert first_chunk.games.moves.shape == (2, 2)
    last = jax.tree.map(lambda leaf: leaf[:, -1, :2], first_chunk.chunk)
    step = jax.jit(jax.vmap(jax.vmap(GAME.step)))
    after = step(last.state, last.action.astype(np.int32))
    goes_on = ~np.asarray(last.terminated)
    assert goes_on.any()
    for leaf, expected in zip(
        jax.tree.leaves(first_chunk.games.state), jax.tree.leaves(after), strict=True
    ):
        np.testing.assert_array_equal(leaf[goes_on], np.asarray(expected)[goes_on])


def test_a_chunk_counts_the_finished_games_of_both_parts(first_chunk):
    number = np.asarray(first_chunk.chunk.terminated).sum()
    assert first_chunk.metrics["games"] == number > first_chunk.counts["games"] > 0


def test_the_first_player_score_is_the_mean_over_both_parts(first_chunk):
    chunk = first_chunk.chunk
    is_first = np.asarray(chunk.state.current_player) == 0
    score = np.where(is_first, chunk.reward, -chunk.reward)
    mean = score[np.asarray(chunk.terminated)].mean()
    assert first_chunk.metrics["first_player_score"] == pytest.approx(mean)


def test_a_chunk_without_its_stored_games_is_an_error(made):
    state = made.algorithm.init(made.variables)
    with pytest.raises(AssertionError, match="equal to '4' on axis '2' but got '2'"):
        train_iteration(made.algorithm, made.settings, state, 0.0)


def test_the_first_iteration_compiles_self_play_and_insertion_for_all(first_chunk):
    assert first_chunk.sizes == first_chunk.sizes[:1] * 3


def test_only_the_games_of_self_play_are_kept(mixed):
    table = pq.read_table(mixed.directory / GAMES).to_pydict()
    assert len(table["game"]) == 6 * 4 * 4  # iterations, slots of self-play, moves
    assert len(set(zip(table["game"], table["ply"], strict=True))) == 6 * 4 * 4


def test_a_run_reports_its_searches_and_all_positions(mixed):
    *_, last = (row for row in metrics(mixed) if row["kind"] == "iteration")
    assert last["simulations"] == 2
    assert last["policy_loss"] > 0
    assert last["positions"] == 6 * 8 * 4


def test_a_stopped_run_with_self_play_and_stored_games_goes_on_exactly(
    mixed, undisturbed, tmp_path
):
    settings = half_stored(tmp_path / "run", undisturbed.directory)
    assert not train(settings, on_iteration=stop_after(3)).finished
    resumed = train(settings)
    assert_same_player(resumed, mixed)
    kept, expected = (
        pq.read_table(run.directory / GAMES).drop_columns("run").to_pydict()
        for run in (resumed, mixed)
    )
    assert kept == expected


def test_a_run_does_not_continue_with_another_fraction(mixed, undisturbed):
    settings = half_stored(mixed.directory, undisturbed.directory, stored_fraction=0.25)
    with pytest.raises(ValueError, match=r"stored_fraction was 0\.5, is 0\.25"):
        train(settings)


def test_the_games_of_a_mixed_run_can_be_learned_from(mixed, made):
    settings = half_stored("unused", mixed.directory)
    chunk, _ = GameReader(settings, GAME, made.algorithm.lanes).chunk()
    assert np.asarray(chunk.terminated).any()


@pytest.mark.parametrize(("fraction", "slots"), [(0.5, 4), (0.25, 6), (1.0, None)])
def test_searches_need_memory_for_the_slots_of_self_play(made, fraction, slots):
    def search_bytes(settings):
        items = required_memory(
            settings,
            GAME,
            made.network,
            made.variables,
            lambda: made.algorithm.init(made.variables),
        )
        return {item.name: item.size for item in items}.get("the search of self-play")

    found = search_bytes(dataclasses.replace(made.settings, stored_fraction=fraction))
    if slots is None:
        assert found is None
        return
    self_play = dataclasses.replace(made.settings.self_play, num_games=slots)
    alone = config("unused", self_play=self_play)
    assert found == search_bytes(alone)


def test_a_forecast_inserts_all_slots(made):
    state = abstract_state(
        lambda: made.algorithm.init(made.variables), made.algorithm.shardings
    )
    found = phases(made.settings, GAME, made.network, made.algorithm, state=state)
    [arguments] = [phase.arguments for phase in found if phase.name == "insertion"]
    _, _, *parts = arguments
    assert [part.action.shape for part in parts] == [(2, 4, 2), (2, 4, 2)]
