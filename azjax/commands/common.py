"""What commands have in common."""


def check_seed(seed: int) -> None:
    """Checks a `--seed`.

    Raises:
        ValueError: it is out of range.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed must be from 0 to 2**32 - 1: {seed}")
