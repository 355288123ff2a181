"""Random games, replayed by OpenSpiel, pgx and plain engines."""

import jax
import numpy as np
import pytest

from azjax.games import make


@pytest.mark.parametrize(
    ("spec", "module", "num_games"),
    [
        ("breakthrough", "breakthrough", 20),
        ("breakthrough:6,5", "breakthrough", 20),
        ("connect_four", "open_spiel", 23),
        ("gomoku", "gomoku", 4),
        ("gomoku:4,6,3", "gomoku", 41),
        ("gomoku:4,6,3,true", "gomoku", 41),  # with a plain engine
        ("hex:11", "hex", 10),
        ("hex:3,true", "hex", 50),
        ("othello", "othello", 30),
        ("tic_tac_toe", "open_spiel", 100),
    ],
)
def test_open_spiel_agrees_at_every_position(
    engine, random_games, spec, module, num_games
):
    record, compare = random_games(make(spec), num_games), engine(module).compare
    counts = compare(make(spec), record)
    assert counts.pop("positions") > 5 * num_games
    assert not any(counts.values())
    # The comparison detects wrong facts.
    wrong = {name: np.array(facts[:4]) for name, facts in record.items()}
    wrong["legal"][:, 3, 0] ^= True
    wrong["board"][:, 3, 0, 0] -= 1
    wrong["rewards"] *= -1
    counts = compare(make(spec), wrong)
    assert counts["legal"] == counts["board"] == 4
    assert counts["rewards"] > 0


@pytest.mark.parametrize(
    ("spec", "module", "make_comparison", "num_games"),
    [
        ("connect_four", "pgx_games", "make_comparison", 100),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("tic_tac_toe", "pgx_games", "make_comparison", 100),
                ("othello", "othello", "make_pgx_comparison", 50),
            )
        ),
    ],
)
def test_pgx_agrees_at_every_position(engine, spec, module, make_comparison, num_games):
    compare = getattr(engine(module), make_comparison)(make(spec))
    counts = jax.device_get(compare(jax.random.split(jax.random.key(1), num_games)))
    assert counts["positions"] > 5 * num_games
    assert counts["illegal"] > 0
    assert not any(counts[fact] for fact in engine("replay").FACTS)
