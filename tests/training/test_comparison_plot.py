import pytest
from training.saved_runs import evaluation_row, iteration_row, save_run

from azjax.training.comparison import read_runs
from azjax.training.comparison_plot import draw_comparison, position_unit

ROWS = [
    evaluation_row(0, mistakes=0.5, random=0.5),
    evaluation_row(4, mistakes=0.25, random=0.75),
]


def drawn(tmp_path, *metrics):
    names = [save_run(tmp_path / f"run{i}", rows) for i, rows in enumerate(metrics)]
    return draw_comparison(read_runs(names))


def curve(axes, name):
    [line] = [line for line in axes.lines if line.get_label() == name]
    return line.get_xdata().tolist(), line.get_ydata().tolist()


def test_each_measure_is_drawn_over_time_and_over_positions(tmp_path):
    figure = drawn(tmp_path, ROWS, ROWS[:1])
    assert len(figure.axes) == 4
    over_time, over_positions = figure.axes[2:]
    assert curve(over_time, "run0") == ([0, 2], [50, 75])
    assert curve(over_positions, "run0") == ([0, 4000], [50, 75])
    assert curve(over_positions, "run1") == ([0], [50])
    assert figure.axes[0].get_title("left") == "Mistakes, network alone"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["run0", "run1"]


def test_a_run_without_the_measure_is_left_out_of_its_panel(tmp_path):
    figure = drawn(tmp_path, ROWS, [evaluation_row(1, random=0.5)], [iteration_row(1)])
    for axes in figure.axes[:2]:
        assert {line.get_label() for line in axes.lines} == {"run0"}
    assert len(figure.legends[0].get_texts()) == 2
    figure.draw_without_rendering()


def test_many_runs_have_different_lines(tmp_path):
    figure = drawn(tmp_path, *([ROWS] * 9))
    lines = [
        (line.get_color(), line.get_linestyle())
        for line in figure.axes[0].lines
        if line.get_label().startswith("run")
    ]
    assert len(set(lines)) == 9


def test_runs_without_evaluations_cannot_be_drawn(tmp_path):
    with pytest.raises(ValueError, match="no run has an evaluation"):
        drawn(tmp_path, [iteration_row(1)], [])


@pytest.mark.parametrize(
    ("most", "unit"),
    [
        (500, ("positions", 1)),
        (300_000, ("thousand positions", 1e3)),
        (3e8, ("million positions", 1e6)),
    ],
)
def test_positions_have_a_readable_unit(most, unit):
    assert position_unit(most) == unit
