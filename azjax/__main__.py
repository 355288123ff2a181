"""`azjax` and `python -m azjax`: the command line."""

from azjax.cli import main

if __name__ == "__main__":
    main()
