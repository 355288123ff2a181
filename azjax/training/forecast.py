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
    stages = config.self_play.simulations
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
    text = f"about {expected:,} iterations are expected in {config.minutes:g} minutes"
    if expected >= FEWEST:
        return text
    return (
        f"{text}, too few to learn much: stop, and begin another run with more "
        f"--minutes, or with fewer --self-play.games ({config.self_play.games}) or "
        f"--self-play.moves-per-chunk ({config.self_play.moves_per_chunk})"
    )
