"""What goes wrong, said in sentences: what is wrong, the value given, what to do."""

import difflib
from collections.abc import Iterable


class InvalidInput(ValueError):
    """Something a person gave cannot be used; the message names the value and the remedy."""


class SimulationFailed(ArithmeticError):
    """A system left the numbers: its state or reward became NaN or infinite."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InvalidInput:
    """The error for a name that is not in the list, with the nearest names that are.

    >>> print(unknown_name("system", "pendulum-swingup", ["pendulum-swing-up", "greenhouse"]))
    There is no system named 'pendulum-swingup'; did you mean pendulum-swing-up?
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(known)}."
    return InvalidInput(f"There is no {kind} named {name!r}; {hint}")
