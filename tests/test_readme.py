"""The pages for people: their examples run and print what they say, their links lead somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```$)?", re.S | re.M)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

EXAMPLES = [
    pytest.param(code, printed, id=f"{page}-{place}")
    for page in ("README.md", "docs/mdp.md", "docs/systems.md")
    for place, (code, printed) in enumerate(EXAMPLE.findall((ROOT / page).read_text("utf-8")))
]


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_an_example_runs_and_prints_what_the_page_says(code, printed):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {"__name__": "example"})
    assert NUMBER.sub("#", said.getvalue()) == NUMBER.sub("#", printed)
    assert numbers(said.getvalue()) == pytest.approx(numbers(printed), rel=0.02, abs=0.05)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_to_files(page):
    links = LINK.findall(page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def numbers(text):
    return [float(number) for number in NUMBER.findall(text)]
