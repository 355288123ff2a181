"""Forecast of how many iterations a run of so many minutes has."""

from azjax.training.config import TrainConfig
from azjax.training.metrics import Row

FEWEST = 20  # iterations of which something can be expected


def expected_iterations(config: TrainConfig, row: Row) -> int | None:
    """Returns how many iterations a run has if the others last as long as this one,
    longer where they search more. Evaluations are left out.

    Args:
        config: of the run.
        row: of the newest iteration.

    Returns:
        The number, None if the run is measured in iterations.
    """
    if config.minutes is None:
        return None
    stages = config.self_play.num_simulations
    stage_seconds = 60 * config.minutes / len(stages)
    expected = float(row["iteration"])
    for index, simulations in enumerate(stages):
        begin, end = index * stage_seconds, (index + 1) * stage_seconds
        left = end - max(begin, row["seconds"])
        search = row["self_play_seconds"] * simulations / row["simulations"]
        expected += max(left, 0.0) / max(search + row["update_seconds"], 1e-9)
    return int(expected)


def forecast_text(config: TrainConfig, expected: int) -> str:
    """Returns the forecast as a line, which warns of a run that is too short."""
    text = f"{expected:,} iterations are expected in {config.minutes:g} minutes"
    if expected >= FEWEST:
        return text
    return f"{text}, too few to learn much: {_advice(config)}"


def late_text(config: TrainConfig, row: Row) -> str:
    """Returns a warning that much time has gone before a forecast can be made."""
    return (
        f"iteration {row['iteration']} ended after {row['seconds'] / 60:.1f} of "
        f"{config.minutes:g} minutes, compiling included: {_advice(config)} if few "
        "follow"
    )


def _advice(config: TrainConfig) -> str:
    return (
        "begin another run with more --minutes, or with fewer --self-play.num-games "
        f"({config.self_play.num_games}) or --self-play.moves-per-chunk "
        f"({config.self_play.moves_per_chunk})"
    )
