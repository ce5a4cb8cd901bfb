"""Words of the command line that no command can understand, refused in a sentence."""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tacos.errors import InvalidInput, unknown_name

OWN_OPTIONS = ("-h", "--help", "--version")
NUMBERS = {int: "whole number", float: "number"}


def check_arguments(arguments: Sequence[str], commands: Mapping[str, type]) -> None:
    """Refuse a command, an option or the value of an option that there is not.

    What else may be wrong, such as a missing system, is left to the parser.
    """
    name, *words = arguments
    if name.startswith("-"):
        if name not in OWN_OPTIONS:
            raise unknown_name("option", name, OWN_OPTIONS)
        return
    if name not in commands:
        raise unknown_name("command", name, commands)
    options = options_of(commands[name])
    for word, after in zip(words, [*words[1:], None], strict=False):
        option, joined, value = word.partition("=")
        if option.startswith("--"):
            if option not in options:
                raise unknown_name(f"option of `tacos {name}`", option, options)
            _check_value(name, option, value if joined else after, options)


def options_of(command: type) -> dict[str, Any]:
    """The options of a command, each with the type of its values."""
    hints = typing.get_type_hints(command)
    fields = [field.name for field in dataclasses.fields(command) if field.name != "system"]
    return {"--help": bool} | {f"--{field}": hints[field] for field in fields}


def _check_value(name: str, option: str, value: str | None, options: Mapping[str, Any]) -> None:
    """Refuse an option without a value, or with one that is not of its type."""
    hint = options[option]
    if hint is bool:
        return
    if value is None or value in options:
        raise InvalidInput(f"{option} needs a value; `tacos {name} --help` says which.")
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Literal and value not in choices:
        raise unknown_name(f"choice of {option}", value, choices)
    for kind, said in NUMBERS.items():
        if (hint is kind or kind in choices) and not _is_a(kind, value):
            raise InvalidInput(f"{option} takes a {said}; got {value!r}.")


def _is_a(kind: type, value: str) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True
