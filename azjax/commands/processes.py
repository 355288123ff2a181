"""Options of a command that is one of several processes of a run."""

import dataclasses
from collections.abc import Sequence

from azjax.commands.parsing import parse
from azjax.devices import use_all_cores
from azjax.training.distributed import join_processes


@dataclasses.dataclass(frozen=True)
class _Processes:
    """The processes of a run and this one's index; see `join_processes`."""

    distributed: bool = False
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None


def join_if_asked(args: Sequence[str], *, prog: str) -> Sequence[str]:
    """Joins the other processes of a run if the arguments contain `--distributed`, and
    otherwise makes each core of a CPU a device; call it before JAX computes. Returns
    the other arguments.

    Args:
        args: arguments of the command line.
        prog: the program's name, for its help.

    Raises:
        ValueError: an argument is invalid, or the processes do not connect.
    """
    processes, rest = parse(
        _Processes, args, prog=prog, return_unknown_args=True, add_help=False
    )
    where = (processes.coordinator, processes.num_processes, processes.process_id)
    if processes.distributed:
        join_processes(*where)
    elif any(value is not None for value in where):
        raise ValueError(
            "--coordinator, --num-processes and --process-id need --distributed"
        )
    else:
        use_all_cores()
    return rest
