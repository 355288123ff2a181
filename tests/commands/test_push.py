import dataclasses

import chex
import jax
import pytest
import yaml
from commands import refusal
from fake_hub import Repository
from training.saved_runs import evaluation_row, save_run
from untrained import untrained_player

from azjax import cli, games, players
from azjax.networks import (
    QNetworkConfig,
    init_q_network,
)
from azjax.players.serialization import load_player_file
from azjax.training.analysis.model_card import card_of_page, model_card

NAME = "ann/little-player"


@pytest.fixture
def player():
    return untrained_player(games.make("tic_tac_toe"))


@pytest.fixture
def run(player, tmp_path):
    """A run directory with a player and an evaluation."""
    directory = tmp_path / "run"
    save_run(directory, [evaluation_row(1)])
    players.save_player(directory / "player", player)
    return directory


def push(*args):
    cli.main(["push", *map(str, args)])


def assert_refused(hub, capsys, match, *args):
    before = {name: len(r.commits) for name, r in hub.repositories.items()}
    refusal.assert_refused(capsys, match, "push", *args)
    assert {name: len(r.commits) for name, r in hub.repositories.items()} == before


def test_a_pushed_player_and_its_page(hub, run, player, tmp_path, capsys):
    push(run, NAME, "--hardware", "an abacus", "--message", "First")
    out = capsys.readouterr().out
    assert out.splitlines() == [
        f"{hub.url}/{NAME}",
        f"Play against it: azjax pull {NAME}",
    ]
    repository = hub.repositories[NAME]
    assert not repository.private
    assert repository.messages[-1] == "First"
    assert set(repository.files) == {
        ".gitattributes",
        "README.md",
        "player.safetensors",
    }
    (tmp_path / "file").write_bytes(repository.files["player.safetensors"])
    loaded = load_player_file(tmp_path / "file", "the Hub")
    chex.assert_trees_all_equal(loaded.variables, player.variables)


def test_the_page_of_a_private_player_states_the_run_and_how_to_play(hub, run):
    push(run, NAME, "--hardware", "an abacus", "--private")
    assert hub.repositories[NAME].private
    assert hub.repositories[NAME].messages[-1] == "Upload a player of tic_tac_toe"
    page = hub.repositories[NAME].files["README.md"].decode()
    _, front, text = page.split("---\n", 2)
    assert yaml.safe_load(front) == {
        "library_name": "azjax",
        "license": "apache-2.0",
        "tags": ["alphazero", "jax", "tic_tac_toe"],
    }
    assert text.startswith(model_card(run, hardware="an abacus"))
    assert f"\nazjax pull {NAME}\n" in text
    assert "\nazjax play tic_tac_toe --opponent alphazero:./little-player\n" in text
    assert card_of_page(page) == model_card(run, hardware="an abacus")


def test_a_players_directory_with_a_card_is_pushed(hub, run, capsys):
    directory = run / "player"
    assert_refused(hub, capsys, "is no run and has no card.md", directory, NAME)
    (directory / "card.md").write_text("# Mine\n")
    assert_refused(hub, capsys, "--hardware", directory, NAME, "--hardware", "x")
    push(directory, NAME)
    page = hub.repositories[NAME].files["README.md"].decode()
    assert card_of_page(page) == "# Mine\n"


def test_a_run_without_an_evaluation_is_refused(hub, run, capsys):
    (run / "metrics.jsonl").write_text("")
    assert_refused(hub, capsys, "has no evaluation", run, NAME)
    assert hub.requests == []


def test_a_player_with_custom_modules_is_refused(hub, run, player, capsys):
    own = dataclasses.replace(player, has_custom_modules=True)
    players.save_player(run / "player", own)
    assert_refused(hub, capsys, "modules of the user's own", run, NAME)
    assert hub.requests == []


def test_a_run_of_q_learning_is_refused(hub, tmp_path, capsys):
    game, config = games.make("tic_tac_toe"), QNetworkConfig(hidden=(4,))
    network, params = init_q_network(
        jax.random.key(0), game.observation_shape, game.num_actions, config
    )
    trained = players.TrainedQ(game, network, params, config)
    players.save_q_player(tmp_path / "q", trained)
    assert_refused(hub, capsys, "another algorithm", tmp_path / "q", NAME)


def test_other_content_in_the_repository_is_not_changed(hub, run, capsys):
    hub.repositories[NAME] = Repository()
    hub.repositories[NAME].commit({"README.md": b"theirs", "model.pkl": b""})
    assert_refused(hub, capsys, "has other content", run, NAME)


def test_wrong_arguments_are_refused(hub, run, tmp_path, capsys, monkeypatch):
    assert_refused(hub, capsys, "must be USER/NAME", run, "../../etc")
    assert_refused(hub, capsys, "no player in", tmp_path / "nowhere", NAME)
    monkeypatch.delenv("HF_TOKEN")
    assert_refused(hub, capsys, "needs a token", run, NAME)
