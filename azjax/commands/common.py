"""What commands have in common."""

INTERRUPTED = 130  # an exit status: 128 and the number of SIGINT, as shells count


def check_seed(seed: int) -> None:
    """Checks a `--seed`.

    Raises:
        ValueError: it is out of range.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed must be from 0 to 2**32 - 1: {seed}")
