import io
import sys

import jax.numpy as jnp
import numpy as np
from rich.console import Console

from azjax import games
from azjax.players import Choice
from azjax.training import summary as summaries
from azjax.training.summary import print_summary


def counts(iteration):
    return {
        "iteration": iteration,
        "seconds": 30.0 * iteration,
        "positions": 1000 * iteration,
        "games": 40 * iteration,
        "updates": 5 * iteration,
        "eligible_share": 0.995 if iteration else None,
        "eligibility_delay": 16.6 if iteration else None,
    }


def evaluation_row(iteration, network=0.4, search=0.2):
    row = counts(iteration)
    rates = {
        "network_mistakes": network,
        "search_mistakes": search,
    }
    for name, rate in rates.items():
        row |= {name: rate, f"{name}_low": 0.9 * rate, f"{name}_high": 1.1 * rate}
    score = {"score": 0.75, "score_low": 0.675, "score_high": 0.825}
    return row | {"scores": {"random": score}}


def summary(run_dir, **changes):
    policy = np.full((1, 9), 0.05, np.float32)
    policy[0, 4] = 0.6
    choice = Choice(jnp.array([4]), jnp.array(policy), jnp.array([0.25]))
    file = io.StringIO()
    settings = {
        "game": games.make("tic_tac_toe"),
        "run_dir": run_dir,
        "first": evaluation_row(0),
        "last": evaluation_row(2, network=0.1),
        "network_choice": choice,
        "search_choice": choice._replace(value=jnp.array([-0.5])),
    }
    print_summary(Console(file=file, width=250), **settings | changes)
    return file.getvalue()


def test_the_summary_tells_results_opinions_and_commands(tmp_path):
    text = summary(tmp_path)
    for part in (
        "1 min 00 s",
        "80 games, 2,000 positions",
        "99.5% of the positions, after 17 more moves on average",
        "40.0% (36.0 to 44.0) → 10.0% (9.0 to 11.0)",
        "score against random",
        "75.0% (67.5 to 82.5) → 75.0% (67.5 to 82.5)",
        "+0.25",
        "-0.50",
        f"azjax play tic_tac_toe --opponent alphazero:{tmp_path}",
        f"azjax evaluate {tmp_path}",
        str(tmp_path / "plots" / "learning.png"),
    ):
        assert part in text
    assert text.count("60.0%") == 2


def test_the_summary_quotes_a_directory_with_spaces(tmp_path):
    text = summary(tmp_path / "my run")
    assert f"azjax evaluate '{tmp_path}/my run'" in text


def test_the_summary_shows_the_likeliest_of_many_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(summaries, "SUMMARY_MOVES", 3)
    text = summary(tmp_path, first=None)
    assert "6 more" in text
    assert "30.0%" in text  # six moves of 5%
    assert "→" not in text


class Nim(games.TicTacToe):
    name = "nim"


def test_the_summary_of_a_game_of_ones_own_names_the_program_that_ran(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "nim.py", raising=False)
    monkeypatch.setattr(sys, "argv", ["nim.py", "train", "nim"])
    text = summary(tmp_path, game=Nim())
    assert f"python nim.py play nim --opponent alphazero:{tmp_path}" in text
    assert f"python nim.py evaluate {tmp_path}" in text


def test_the_summary_of_a_network_of_own_parts_says_that_they_are_needed(tmp_path):
    text = summary(tmp_path, has_own_parts=True)
    assert text.count(" --parts MODULE:NAME") == 2
