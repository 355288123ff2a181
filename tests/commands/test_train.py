import pytest

from azjax.commands.train import parse_train_config


def test_parsed_settings_start_from_the_preset():
    config = parse_train_config(
        "tic_tac_toe",
        ["--preset", "accelerator", "--iterations", "4", "--learner.batch-size", "7"],
        prog="test",
        minutes=2.0,
    )
    assert (config.minutes, config.iterations) == (None, 4)
    assert config.network.trunk == "conv"
    assert config.learner.batch_size == 7


@pytest.mark.parametrize("option", ["--from", "--initial-player"])
def test_a_run_can_begin_with_the_player_of_another(option):
    args = [option, "runs/old", "--minutes", "3"]
    config = parse_train_config("tic_tac_toe", args, prog="test")
    assert config.initial_player == "runs/old"
