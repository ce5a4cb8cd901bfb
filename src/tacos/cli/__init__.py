"""The command line.

Nothing heavy is imported before a command needs it, so that help comes at once.
"""

import sys
from collections.abc import Sequence

import tyro

from tacos.cli.commands import COMMANDS
from tacos.errors import InvalidInput, SimulationFailed

DESCRIPTION = """Controllers that decide what to do and for how long to leave it alone.

`tacos COMMAND --help` lists the options of a command, `tacos --version` tells the version."""

SIMULATION_FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes; that of success is 0."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments say, and give its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments == ["--version"]:
        return _print_version()
    command = tyro.cli(
        COMMANDS,
        prog="tacos",
        description=DESCRIPTION,
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    try:
        command.run()
    except InvalidInput as error:
        return _say(error, BAD_INPUT)
    except SimulationFailed as error:
        return _say(error, SIMULATION_FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _say(error: Exception, code: int) -> int:
    print(error, file=sys.stderr)
    return code


def _print_version() -> int:
    from importlib.metadata import version

    print(version("tacos-rl"))
    return 0
