"""Forecast of how many iterations a run of so many minutes has."""

import dataclasses

from azjax.training.config import TrainConfig
from azjax.training.metrics import Row

FEWEST = 20  # iterations of which something can be expected


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Of a run that is measured in minutes.

    minutes: that the run lasts.
    simulations: of a search, in each of equal parts of the run.
    advice: what to do where there are too few iterations.
    """

    minutes: float
    simulations: tuple[int, ...]
    advice: str

    def iterations(self, row: Row) -> int:
        """Returns how many iterations the run has if the others last as long as that of
        the row, longer where they search more. Evaluations are left out."""
        stage_seconds = 60 * self.minutes / len(self.simulations)
        expected = float(row["iteration"])
        for index, simulations in enumerate(self.simulations):
            begin, end = index * stage_seconds, (index + 1) * stage_seconds
            left = end - max(begin, row["seconds"])
            search = row["self_play_seconds"] * simulations / row["simulations"]
            expected += max(left, 0.0) / max(search + row["update_seconds"], 1e-9)
        return int(expected)

    def text(self, expected: int) -> str:
        """Returns the forecast as a line, which warns of a run that is too short."""
        text = f"{expected:,} iterations are expected in {self.minutes:g} minutes"
        if expected >= FEWEST:
            return text
        return f"{text}, too few to learn much: {self.advice}"

    def late_text(self, row: Row) -> str:
        """Returns a warning that much time has gone before a forecast can be made."""
        return (
            f"iteration {row['iteration']} ended after {row['seconds'] / 60:.1f} of "
            f"{self.minutes:g} minutes, compiling included: {self.advice} if few follow"
        )


def make_forecast(config: TrainConfig) -> Forecast | None:
    """Returns the forecast of a run, None if it is measured in iterations."""
    if config.minutes is None:
        return None
    advice = (
        "begin another run with more --minutes, or with fewer --self-play.num-games "
        f"({config.self_play.num_games}) or --self-play.moves-per-chunk "
        f"({config.self_play.moves_per_chunk})"
    )
    return Forecast(config.minutes, config.self_play.num_simulations, advice)
