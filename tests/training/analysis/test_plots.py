import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from training import saved_runs
from training.saved_runs import with_interval

from azjax.games import game_title
from azjax.training.analysis.plots import draw_learning, plot_learning


def iteration_row(iteration, **changes):
    number = 8 if iteration < 3 else 16
    found = {"simulations": number, "policy_loss": 1.5, "value_loss": 0.9}
    return saved_runs.iteration_row(iteration) | found | changes


def evaluation_row(iteration, *, mistakes=None, score=0.8):
    row = saved_runs.evaluation_row(iteration, mistakes=mistakes, random=score)
    if mistakes is not None:
        row |= with_interval("search_mistakes", mistakes / 2)
    return row


def write_rows(run_dir, rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (run_dir / "metrics.jsonl").write_text(lines)


@pytest.mark.parametrize(
    "rows",
    [
        [evaluation_row(0)],
        [
            evaluation_row(0, mistakes=0.0),
            iteration_row(1, policy_loss=None, value_loss=None, games=0),
        ],
        [
            evaluation_row(0, mistakes=0.4),
            iteration_row(2000, policy_loss=float("nan")),
            evaluation_row(2000, mistakes=0.0),
        ],
    ],
)
def test_unusual_metrics_are_drawn_without_a_warning(rows):
    draw_learning(rows, "Go").draw_without_rendering()


def test_the_plot_is_a_picture_with_colors_and_no_other_file_is_left(tmp_path):
    rows = [evaluation_row(0, mistakes=0.4), *map(iteration_row, range(1, 5))]
    write_rows(tmp_path, [*rows, evaluation_row(4, mistakes=0.1)])
    path = plot_learning(tmp_path)
    pixels = imread(path)
    assert pixels.shape[1] == 1350
    assert np.ptp(pixels[..., :3], axis=-1).max() > 0.5
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mistakes", [0.1, 0.0])
def test_axes_leave_room_for_markers_and_say_that_they_are_not_linear(mistakes):
    rows = [evaluation_row(0, mistakes=0.4), *map(iteration_row, range(1, 5))]
    for axes in draw_learning([*rows, evaluation_row(4, mistakes=mistakes)], "Go").axes:
        low, high = axes.get_xlim()
        assert low < 0
        assert high > 2  # minutes
        is_linear = axes.get_yscale() == "linear"
        assert ("logarithmic" in axes.get_ylabel()) != is_linear


def labels(rows):
    """The legends of the panels, top to bottom."""
    panels = draw_learning(rows, "Go").axes
    return [panel.get_legend_handles_labels()[1] for panel in panels]


def test_mistakes_are_drawn_above_the_scores():
    rows = [evaluation_row(0, mistakes=0.4), evaluation_row(1, mistakes=0.1)]
    mistakes, scores, *_ = labels(rows)
    assert mistakes == ["network alone: 40.0% → 10.0%", "with search: 20.0% → 5.0%"]
    assert scores == ["against random: 80.0% → 80.0%"]


def test_the_lost_win_probability_is_drawn_in_place_of_mistakes():
    rows = [saved_runs.evaluation_row(n, lost=0.02 / (n + 1)) for n in range(2)]
    panel = draw_learning(rows, "Ur").axes[0]
    assert panel.get_title("left") == "Ur: win probability lost against perfect play"
    texts = panel.get_legend_handles_labels()[1]
    assert texts == ["network alone: 2.00% → 1.00%"]


def test_scores_are_drawn_first_without_mistakes():
    row = evaluation_row(0, score=0.5)
    row["scores"]["mcts:9"] = with_interval("score", 0.1)
    scores = labels([row])[0]
    assert scores == ["against random: 50.0%", "against mcts:9: 10.0%"]


def test_a_run_without_opponents_has_only_mistakes():
    row = evaluation_row(0, mistakes=0.4)
    assert len(draw_learning([row], "Go").axes) == 4
    assert len(draw_learning([row | {"scores": {}}], "Go").axes) == 3


def test_every_loss_of_a_row_is_drawn():
    *_, found, _ = labels([evaluation_row(0), iteration_row(1, ownership_loss=0.3)])
    assert found == ["policy", "value", "ownership"]


def test_a_run_without_search_has_one_player_and_no_simulations():
    evaluation, iteration = evaluation_row(1, mistakes=0.4), iteration_row(1, epsilon=1)
    for name in ("search_mistakes", "search_mistakes_low", "search_mistakes_high"):
        del evaluation[name]
    for name in ("simulations", "policy_loss"):
        del iteration[name]
    panels = draw_learning([iteration, evaluation], "Go").axes
    texts = [panel.get_legend_handles_labels()[1] for panel in panels]
    assert texts[0] == ["network alone: 40.0%"]
    assert texts[2] == ["value"]
    assert panels[3].get_title("right") == ""


def test_a_run_without_evaluations_cannot_be_drawn(tmp_path):
    write_rows(tmp_path, [iteration_row(1)])
    with pytest.raises(ValueError, match="no evaluation yet"):
        plot_learning(tmp_path)


def test_the_title_names_the_game_of_the_configuration(tmp_path, monkeypatch):
    titles = []
    monkeypatch.setattr(
        "azjax.training.analysis.plots.draw_learning",
        lambda rows, title: titles.append(title) or Figure((1, 1)),
    )
    write_rows(tmp_path, [evaluation_row(0)])
    plot_learning(tmp_path)
    (tmp_path / "config.json").write_text('{"game": "tic_tac_toe"}')
    path = plot_learning(tmp_path)
    assert titles == [game_title(tmp_path.name), "Tic Tac Toe"]
    assert list(path.parent.iterdir()) == [path]
