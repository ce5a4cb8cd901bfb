"""The systems that come with the library."""

import pytest

from tacos.errors import InvalidInput
from tacos.systems.catalogue import CATALOGUE, entry, make
from tacos.systems.sde import SDE


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_system_is_made_by_its_name(name):
    assert isinstance(make(name), SDE)
    assert entry(name) is CATALOGUE[name]
    assert type(make(name)) is type(CATALOGUE[name].make())


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_usual_holds_fit_into_the_horizon(name):
    shortest, longest = entry(name).hold
    assert 1 <= shortest < longest <= make(name).horizon_ticks


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_system_says_in_a_line_what_it_is_about(name):
    assert 10 < len(entry(name).summary) < 70
    assert "\n" not in entry(name).summary


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_state_and_control_has_a_name_of_its_own(name):
    system = make(name)
    names = [quantity.name for quantity in (*system.states, *system.controls)]
    assert len(set(names)) == len(names)
    assert all(names)


@pytest.mark.parametrize("ask", [entry, make])
def test_an_unknown_system_is_answered_with_the_nearest_names(ask):
    with pytest.raises(InvalidInput) as refused:
        ask("pendulum-swingup")
    assert str(refused.value) == (
        "There is no system named 'pendulum-swingup'; "
        "did you mean pendulum-swing-up or pendulum-swing-down?"
    )


def test_a_name_like_no_other_is_answered_with_all_of_them():
    with pytest.raises(InvalidInput) as refused:
        make("zzz")
    assert str(refused.value).startswith("There is no system named 'zzz'; choose from ")
    assert all(name in str(refused.value) for name in CATALOGUE)
