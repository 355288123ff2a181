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
