import json

import pytest

from azjax import games
from azjax.settings import FORMAT
from azjax.training import preset
from azjax.training.analysis.model_card import card_of_page, hub_page, model_card

EVALUATION = {"kind": "evaluation", "games": 3, "updates": 4, "seconds": 61.0}


def write_config(run, config):
    settings = config.to_json() | {"format": FORMAT}
    (run / "config.json").write_text(json.dumps(settings))


@pytest.fixture
def run(tmp_path):
    """A run directory with two evaluations."""
    weights = "/home/kim/a|<b>*c*"
    config = preset("cpu", "hex:3", iterations=9, seed=5, initial_player=weights)
    write_config(tmp_path, config)
    scores = [
        {"mc|ts": {"score": s, "score_low": s - 0.1, "score_high": s + 0.1}}
        for s in (0.25, 0.75)
    ]
    rows = [
        EVALUATION | {"iteration": 0, "positions": 0, "scores": scores[0]},
        {"kind": "iteration", "iteration": 9, "positions": 1234},
        EVALUATION | {"iteration": 9, "positions": 1234, "scores": scores[1]},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "metrics.jsonl").write_text(text)
    return tmp_path


def test_a_card_states_the_run_and_its_strength_as_text_without_markup(run):
    card = model_card(run, hardware="one chip")
    assert card.startswith("# Hex")
    for cell in (
        "| game | hex:3 |",
        "| seed | 5 |",
        "| played | 3 games, 1,234 positions |",
        "25.0% (15.0 to 35.0) → 75.0% (65.0 to 85.0) |",
        "| hardware | one chip |",
        "| license | Apache-2.0 |",
        r"| initial weights | a\|&lt;b&gt;\*c\* |",
        r"| score, network alone against mc\|ts |",
    ):
        assert cell in card
    assert "hardware" not in model_card(run)


def test_a_card_states_the_sources_and_the_fraction_of_stored_games(run):
    config = preset(
        "cpu",
        "hex:3",
        iterations=9,
        learn_from=("/home/kim/runs/a", "gs://bucket/b/"),
        stored_fraction=0.25,
        notes="games of a club",
    )
    write_config(run, config)
    card = model_card(run)
    assert "| learned from stored games of | a, b |" in card
    assert "| fraction of stored games | 0.25 |" in card
    assert "| notes | games of a club |" in card


def test_a_card_states_the_line_planes_of_the_network(run):
    planes = "planes of the cells that complete 4 in a row"
    assert planes not in model_card(run)
    write_config(run, preset("cpu", "connect_four", iterations=9))
    assert planes in model_card(run)


def test_no_run_and_a_run_without_an_evaluation_have_no_card(run):
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="has no evaluation"):
        model_card(run)
    (run / "config.json").unlink()
    with pytest.raises(ValueError, match="no run in"):
        model_card(run)


def test_a_page_holds_the_card_and_how_to_play():
    page = hub_page("# Hex\n\n| a |\n", games.make("hex:3"), "ann/hexer")
    assert page.startswith("---\nlibrary_name: azjax\nlicense: apache-2.0\n")
    assert "\nazjax pull ann/hexer\n" in page
    assert "\nazjax play hex:3 --opponent alphazero:./hexer\n" in page
    assert card_of_page(page) == "# Hex\n\n| a |\n"


@pytest.mark.parametrize(
    ("page", "card"),
    [
        ("# Other\n", "# Other\n"),
        ("---\na: b\n---\n# Other", "# Other\n"),
        ("---\na: b\n", "---\na: b\n"),
    ],
)
def test_the_card_of_another_page_is_its_text(page, card):
    assert card_of_page(page) == card
