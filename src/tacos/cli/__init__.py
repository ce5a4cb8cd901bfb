"""The command line.

Nothing heavy is imported before a command needs it, so that help comes at once.
"""

import os
import sys
from collections.abc import Sequence

import tyro

from tacos.cli.arguments import check_arguments
from tacos.cli.commands import COMMANDS, NAMES, Command
from tacos.errors import InvalidInput, SimulationFailed

DESCRIPTION = """Controllers that decide what to do and for how long to leave it alone.
`tacos COMMAND --help` lists the options of a command, `tacos --version` tells the version."""

SIMULATION_FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes; that of success is 0."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments say, and give its exit code; without any, say what there
    is."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if arguments == ["--version"]:
        return _print_version()
    try:
        _command(arguments).run()
        sys.stdout.flush()
    except InvalidInput as error:
        return _say(error, BAD_INPUT)
    except SimulationFailed as error:
        return _say(error, SIMULATION_FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
    return 0


def _command(arguments: list[str]) -> Command:
    check_arguments(arguments, NAMES)
    command, unused = tyro.cli(
        COMMANDS,
        prog="tacos",
        description=DESCRIPTION,
        args=arguments,
        return_unknown_args=True,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    if unused:
        raise InvalidInput(
            f"`tacos {arguments[0]}` has no use for {' '.join(unused)!r}; "
            f"`tacos {arguments[0]} --help` says what it takes."
        )
    return command


def _say(error: Exception, code: int) -> int:
    print(error, file=sys.stderr)
    return code


def _discard_output() -> None:
    """Nobody reads any more, as in `tacos systems | head -1`; what is left goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_version() -> int:
    from importlib.metadata import version

    print(version("tacos-rl"))
    return 0
