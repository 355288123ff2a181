"""Divides the slots between stored games and self-play, see
`TrainConfig.stored_fraction`."""

from azjax.checks import check_number


def stored_part(fraction: float, lane_slots: int) -> int:
    """Returns how many of the `lane_slots` slots of a lane hold stored games."""
    return round(fraction * lane_slots)


def check_stored_fraction(
    fraction: float, lane_slots: int, *, has_sources: bool
) -> None:
    """Checks the fraction of stored games.

    Args:
        fraction: of the slots of each lane.
        lane_slots: slots of a lane, B / L.
        has_sources: whether the run has stored games.

    Raises:
        ValueError: it is not above 0 and at most 1, is below 1 without stored games, or
            leaves a lane without stored games or without self-play.
    """
    check_number("stored_fraction", fraction, above=0, at_most=1)
    if fraction == 1:
        return
    if not has_sources:
        raise ValueError(f"stored_fraction must be 1 without learn_from: {fraction}")
    if not 0 < stored_part(fraction, lane_slots) < lane_slots:
        raise ValueError(
            "stored_fraction must be 1, or give a part of the slots of each lane to "
            f"stored games and a part to self-play: {fraction} of {lane_slots} "
            "(self_play.num_games / num_lanes) is "
            f"{stored_part(fraction, lane_slots)}"
        )
