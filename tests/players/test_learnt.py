import pytest

from azjax import games
from azjax.players import DEFAULT_SIMULATIONS, save_player
from azjax.players.learnt import load_learnt


@pytest.fixture
def run(trained, tmp_path):
    save_player(tmp_path / "run" / "player", trained)
    return tmp_path / "run"


def test_a_learnt_player_has_the_settings_of_its_run(trained, run):
    player = load_learnt("alphazero", run, trained.game)
    assert player.search == trained.search
    assert player.simulations == DEFAULT_SIMULATIONS
    assert load_learnt("network", run, trained.game).temperature == 0


@pytest.mark.parametrize("kind", ["gtp:touch owned", "random", "human", ""])
def test_an_unknown_kind_is_refused(trained, run, kind):
    with pytest.raises(ValueError, match="a learnt player is one of alphazero, "):
        load_learnt(kind, run, trained.game)


def test_a_directory_is_no_text(trained, run):
    with pytest.raises(ValueError, match=r"no player in .*run\?simulations=5"):
        load_learnt("alphazero", run.with_name("run?simulations=5"), trained.game)


def test_a_player_of_another_game_is_refused(trained, run):
    with pytest.raises(ValueError, match=f"is for {trained.game}, not for hex"):
        load_learnt("network", run, games.make("hex"))
