import pytest

from tacos.errors import InvalidInput, SimulationFailed, unknown_name

KNOWN = ["rc-car", "pendulum-swing-up", "greenhouse", "pendulum-swing-down"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("greenhose", "did you mean greenhouse?"),
        ("rc_car", "did you mean rc-car?"),
        ("pendulum-swing", "did you mean pendulum-swing-up or pendulum-swing-down?"),
        ("zzz", "choose from greenhouse, pendulum-swing-down, pendulum-swing-up, rc-car."),
        ("", "choose from greenhouse, pendulum-swing-down, pendulum-swing-up, rc-car."),
    ],
)
def test_an_unknown_name_is_answered_with_those_near_it_or_else_with_all(name, hint):
    error = unknown_name("system", name, KNOWN)
    assert isinstance(error, InvalidInput)
    assert str(error) == f"There is no system named {name!r}; {hint}"


def test_names_may_come_from_any_iterable():
    error = unknown_name("rule", "bugdet", iter({"budget": 1, "cost": 2}))
    assert str(error) == "There is no rule named 'bugdet'; did you mean budget?"


def test_errors_are_those_that_python_programs_expect():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(SimulationFailed, ArithmeticError)
