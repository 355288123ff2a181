"""Runs `azjax gtp` and `azjax uci` in this process, with a front end in a thread."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import pytest

from azjax import cli


def run_with_front_end(
    args: Sequence[str], converse: Callable[[BinaryIO, BinaryIO], object]
) -> int | None:
    """Runs a command; returns its exit status.

    Args:
        args: the arguments of `azjax`.
        converse: the front end, called with its ends of the pipes to the program's
            input, which stays open unless it is closed here, and from its output.
    """
    read_input, write_input = os.pipe()
    read_output, write_output = os.pipe()
    with (
        open(read_input) as stdin,
        open(write_output, "w") as stdout,
        open(read_output, "rb") as from_program,
        open(write_input, "wb", buffering=0) as to_program,
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(1) as executor,
    ):

        def front_end():
            try:
                converse(to_program, from_program)
            except BaseException:
                to_program.close()  # the program would wait for more
                raise

        patch.setattr(sys, "stdin", stdin)
        outcome = executor.submit(front_end)
        threads = threading.enumerate()
        try:
            with contextlib.redirect_stdout(stdout):
                cli.main(args)
            status = 0
        except SystemExit as end:
            status = end.code
        with contextlib.suppress(BrokenPipeError):
            stdout.close()
        outcome.result()
        to_program.close()
        for thread in threading.enumerate():  # that read the input
            if thread not in threads:
                thread.join()
        return status


def answers_to(text: bytes, *args: str) -> tuple[int | None, bytes]:
    """Returns a command's exit status and output for a complete input."""
    output = []

    def converse(to_program, from_program):
        to_program.write(text)
        to_program.close()
        output.append(from_program.read())

    status = run_with_front_end(args, converse)
    return status, output[0]
