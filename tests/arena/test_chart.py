import numpy as np
from matplotlib.image import imread

from azjax.arena import WinDrawLoss
from azjax.arena.chart import draw_chart
from azjax.arena.tournament import Standing


def line(name, elo, low, high):
    return Standing(name, 0, elo, (low, high), WinDrawLoss(1, 1, 1), 0.0, 0)


TABLE = [
    line("alphazero:runs/a_very_long_name/of_a_run?simulations=1000", 800, 500, 2900),
    line("network:pretrained", 300, 250, 350),
    line("random", 0, 0, 0),
]


def test_the_chart_is_saved_as_a_colored_picture(tmp_path):
    draw_chart("connect_four: ratings", TABLE).savefig(tmp_path / "ratings.png")
    pixels = imread(tmp_path / "ratings.png")
    assert pixels.shape[1] == 1350
    assert np.ptp(pixels[..., :3], axis=-1).max() > 0.5


def test_the_strongest_player_is_on_top_and_every_rating_is_visible():
    (axes,) = draw_chart("connect_four", TABLE).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[1:] == ["network:pretrained", "random"]
    assert names[0].startswith("alphazero:runs")
    assert names[0].endswith("?simulations=1000")
    bottom, top = axes.get_ylim()
    assert top < 0
    assert bottom > 2
    low, high = axes.get_xlim()
    assert low < 0
    assert 800 < high < 2000
