"""The command line as a person and a program meet it."""

import importlib
import json
import os
import re
import subprocess
import sys
import time

import pytest

from tacos.cli import main
from tacos.systems import CATALOGUE

HEAVY = ("jax", "numpy", "scipy", "matplotlib", "gymnasium", "equinox", "diffrax")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def tacos(capsys):
    """Runs a command, and gives its exit code, standard output and standard error."""

    def run(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def refused(tacos):
    """Runs a command that is to be refused, and gives the sentence that says why."""

    def run(*arguments):
        code, out, err = tacos(*arguments)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        assert err.count("\n") == 1
        assert err.endswith((".\n", "?\n"))
        return err.strip()

    return run


def in_a_process(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_help_comes_within_half_a_second():
    code = "import sys; from tacos.cli import main; main(sys.argv[1:])"
    seconds = []
    for _ in range(5):
        begun = time.perf_counter()
        assert "usage: tacos" in in_a_process(code, "--help")
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 0.5


@pytest.mark.parametrize(
    "code",
    [
        "import tacos",
        "from tacos.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from tacos.cli import main\ntry: main(['simulate', '-h'])\nexcept SystemExit: pass",
        "from tacos.cli import main\nmain(['--version'])",
        "from tacos.cli import main\nmain(['simulat'])",
    ],
)
def test_importing_and_help_load_nothing_heavy(code):
    loaded = in_a_process(f"{code}\nimport sys; print(*sys.modules)").splitlines()[-1].split()
    assert "tacos" in loaded
    assert not set(HEAVY) & set(loaded)


def test_every_public_name_is_there_and_others_are_refused():
    package = importlib.import_module("tacos")
    assert all(hasattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match="module 'tacos' has no attribute 'Sytem'"):
        _ = package.Sytem


def test_tacos_alone_says_what_there_is(tacos):
    code, out, _ = tacos()
    assert code == 0
    for command in ("systems", "simulate", "optimum"):
        assert command in out
    assert out == tacos("--help")[1]


def test_the_version_is_a_version(tacos):
    code, out, _ = tacos("--version")
    assert code == 0
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", out)


@pytest.mark.parametrize("width", [80, 120])
def test_the_list_of_systems_has_each_with_its_tick_and_fits_the_terminal(
    tacos, monkeypatch, width
):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = tacos("systems")
    assert code == 0
    assert all(name in out for name in CATALOGUE)
    assert re.search(r"greenhouse +keep .*5 min +25 h +1 to 50", out)
    assert max(map(len, out.splitlines())) <= width


def test_the_systems_as_json_are_one_object(tacos):
    code, out, err = tacos("systems", "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    systems = {system["name"]: system for system in json.loads(out)["systems"]}
    assert list(systems) == list(CATALOGUE)
    assert systems["greenhouse"]["dt"] == 300.0
    assert systems["rc-car"]["controls"][0] == {
        "name": "steering",
        "unit": "",
        "low": -1.0,
        "high": 1.0,
    }


def test_a_simulation_prints_its_schedule_and_return_and_draws_a_figure(tacos, tmp_path):
    code, out, err = tacos("simulate", "tumour", "--seed", 3)
    assert (code, err) == (0, "")
    assert "infusion" in out
    assert re.search(r"return +-?\d+\.\d{4}  reward of the episode, without costs", out)
    assert "in 80 ticks" in out
    figure = tmp_path / "out" / "simulate-tumour.png"
    assert "Drawn in out/simulate-tumour.png" in out.replace(os.sep, "/")
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_json_is_one_object_and_nothing_else(tacos, tmp_path):
    code, out, err = tacos("simulate", "tumour", "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    record = json.loads(out)
    assert record["interactions"] == len(record["schedule"])
    assert sum(row[1] for row in record["schedule"]) == 80
    assert list(tmp_path.iterdir()) == []


def test_json_draws_where_a_folder_is_given(tacos, tmp_path):
    code, out, _ = tacos("simulate", "tumour", "--json", "--out", tmp_path / "deep" / "figures")
    assert code == 0
    assert isinstance(json.loads(out), dict)
    assert (tmp_path / "deep" / "figures" / "simulate-tumour.png").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("pendulum-swing-up", "--noise", 1, "--seed", 5),
        ("rc-car", "--dt", 0.025, "--seed", 2),
        ("linear-quadratic",),
    ],
)
def test_a_printed_schedule_read_back_gives_the_same_return(tacos, tmp_path, options):
    _, printed, _ = tacos("simulate", *options, "--json")
    file = tmp_path / "schedule.json"
    file.write_text(printed)
    _, again, _ = tacos("simulate", *options, "--json", "--holds", file)
    assert json.loads(again) == json.loads(printed)


def test_the_seed_decides_the_random_schedule(tacos):
    first, again, other = (
        json.loads(tacos("simulate", "tumour", "--json", "--seed", seed)[1]) for seed in (1, 1, 2)
    )
    assert first == again
    assert first["schedule"] != other["schedule"]


def test_random_holds_lie_within_their_bounds_and_fill_the_horizon(tacos):
    record = json.loads(tacos("simulate", "tumour", "--json", "--hold", 7, 9)[1])
    holds = [row[1] for row in record["schedule"]]
    assert sum(holds) == 80
    assert set(holds) <= {7, 8, 9}


def test_a_constant_control_is_held_again_and_again_to_the_end(tacos):
    _, out, _ = tacos(
        "simulate", "rc-car", "--holds", "constant", "--control", -0.5, 1, "--hold", 30, "--json"
    )
    control = [-0.5, 1.0]
    assert json.loads(out)["schedule"] == [[0, 30, control], [30, 30, control], [60, 20, control]]


def test_at_another_tick_the_longest_hold_keeps_its_duration(tacos):
    options = ("simulate", "rc-car", "--holds", "constant", "--json")
    usual, fine = (json.loads(tacos(*options, *more)[1]) for more in ((), ("--dt", 0.005)))
    assert usual["schedule"][0][1] == 10
    assert fine["schedule"][0][1] == 100


def test_a_noise_of_zero_is_none(tacos):
    options = ("simulate", "linear-quadratic", "--json")
    noisy, quiet = (json.loads(tacos(*options, *more)[1]) for more in ((), ("--noise", 0)))
    assert (noisy["noise"], quiet["noise"]) == (1.0, 0.0)
    assert noisy["return"] != quiet["return"]


def test_a_noise_scale_multiplies_the_usual_noise(tacos):
    scales = (), ("--noise", 0.5), ("--noise", 2)
    records = [json.loads(tacos("simulate", "tumour", "--json", *more)[1]) for more in scales]
    assert [record["noise"] for record in records] == [0.0, 0.5, 2.0]
    assert len({record["return"] for record in records}) == 3


def test_a_long_schedule_leaves_out_its_middle(tacos):
    _, out, _ = tacos("simulate", "tumour", "--hold", 1)
    assert "⋮" in out
    assert re.search(r"^ +79 +1 +19\.75 +0\.25 ", out, re.MULTILINE)
    assert len(out.splitlines()) < 50


def test_a_system_that_leaves_the_numbers_is_a_failure_of_its_own(tacos):
    code, out, err = tacos("simulate", "rc-car", "--noise", 1e300)
    assert (code, out) == (1, "")
    assert "became NaN or infinite at 0 s (tick 0)" in err


def test_output_that_nobody_reads_is_no_failure():
    code = "import sys; from tacos.cli import main; sys.exit(main(['systems', '--json']))"
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, b"")


ON_CAR = {
    ("--dt", "-1"): "A tick must be a positive number of seconds; got -1.",
    ("--dt", "0"): "A tick must be a positive number of seconds; got 0.",
    ("--dt", "nan"): "A tick must be a positive number of seconds; got nan.",
    ("--dt", "0.3"): "A horizon of 4 s is no whole number of ticks of 0.3 s; "
    "the nearest tick that divides it is 0.3076923077 s.",
    ("--dt", "1e-9"): "With --dt 1e-09 an episode of 4 s has 4000000000 ticks, too many to "
    "follow; take 4e-07 s or more.",
    ("--dt", "x"): "--dt takes a number; got 'x'.",
    ("--dt",): "--dt needs a value; `tacos simulate --help` says which.",
    ("--hold", "5", "3"): "The shortest hold, 5 ticks, is longer than the longest, 3; "
    "give them as (shortest, longest).",
    ("--hold", "0"): "The shortest hold is a tick or more; got 0.",
    ("--hold", "1", "81"): "The longest hold, 81 ticks, goes beyond the horizon of 80 ticks; "
    "take 80 or less.",
    ("--hold", "1", "2", "3"): "--hold takes the shortest and the longest hold; got 3 numbers.",
    ("--hold", "--json"): "--hold needs a value; `tacos simulate --help` says which.",
    ("--hold", "1.5"): "--hold takes a whole number; got '1.5'.",
    ("--hold", "3"): "Holds of 3 to 3 ticks cannot fill a horizon of 80 ticks exactly; "
    "allow shorter or longer holds.",
    ("--holds", "constant", "--hold", "0", "3"): "The shortest hold is a tick or more; got 0.",
    ("--holds", "constant", "--hold", "5", "3"): "The shortest hold, 5 ticks, is longer than the "
    "longest, 3; give them as (shortest, longest).",
    ("--holds", "constant", "--control", "nan", "1"): "The control 'steering' lies between -1 and "
    "1; got nan.",
    ("--holds", "constant", "--control", "0", "inf"): "The control 'throttle' lies between -1 and "
    "1; got inf.",
    ("--holds", "constant", "--control", "5", "0"): "The control 'steering' lies between -1 and 1; "
    "got 5.",
    ("--holds", "constant", "--control", "1"): "--control needs an entry for each of steering, "
    "throttle; got 1.",
    ("--control", "1", "1"): "--control belongs to --holds constant; --holds random has its own "
    "controls.",
    ("--holds", "no.json"): "There is no file no.json; --holds takes random, constant or the path "
    "of a JSON file.",
    ("--holds", "."): "The schedule . cannot be read: Is a directory; give the path of a JSON "
    "file.",
    ("--noise", "-1"): "A noise scale is a number, zero or more; got -1.",
    ("--noise", "nan"): "A noise scale is a number, zero or more; got nan.",
    ("--noise", "inf"): "A noise scale is a number, zero or more; got inf.",
    ("--seed", "-1"): "A seed is a whole number from 0 to 4294967295; got -1.",
    ("--seed", "4294967296"): "A seed is a whole number from 0 to 4294967295; got 4294967296.",
    ("--seed", "one"): "--seed takes a whole number; got 'one'.",
    ("extra",): "`tacos simulate` has no use for 'extra'; `tacos simulate --help` says what it "
    "takes.",
}


@pytest.mark.parametrize(("options", "sentence"), ON_CAR.items(), ids=" ".join)
def test_options_that_cannot_be_used_are_refused_in_a_sentence(refused, options, sentence):
    assert refused("simulate", "rc-car", *options) == sentence


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("simulat", "rc-car"), "There is no command named 'simulat'; did you mean simulate?"),
        (("nope",), "There is no command named 'nope'; choose from optimum, simulate, systems."),
        (("simulate", "rccar"), "There is no system named 'rccar'; did you mean rc-car?"),
        (("simulate", "rc-car", "--sede", "1"), "named '--sede'; did you mean --seed"),
        (("simulate", "--nope", "rc-car"), "There is no option of `tacos simulate` named '--nope'"),
        (("systems", "--jsn"), "named '--jsn'; did you mean --json?"),
        (("--versoin",), "There is no option named '--versoin'; did you mean --version?"),
        (("optimum", "rc-car", "--method", "gird"), "named 'gird'; did you mean grid?"),
        (("optimum", "rc-car", "--budget", "1.5"), "--budget takes a whole number; got '1.5'."),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(refused, arguments, nearest):
    assert nearest in refused(*arguments)


def test_a_missing_system_is_refused_and_said_where_to_find_one(tacos):
    code, out, err = tacos("simulate")
    assert (code, out) == (2, "")
    assert "SYSTEM" in err
    assert "`tacos systems` lists" in err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is no JSON: "),
        ("[]", "has no schedule; it needs a JSON object"),
        ('{"schedule": []}', "has no schedule; it needs a JSON object"),
        ('{"schedule": [[0, 3, [0, 0]], [4, 2, [0, 0]]]}', "starts at tick 4, but the hold before"),
        ('{"schedule": [[0, 3, [0]]]}', "This system takes controls of 2 entries"),
        ('{"schedule": [[0, 3, [0, NaN]]]}', "Controls are finite numbers; hold 0 has [0.0, nan]"),
        ('{"schedule": [[0, 0, [0, 0]]]}', "got holds of [0] ticks"),
        ('{"schedule": [[0, 80, [0, 5]]]}', "'throttle' lies between -1 and 1; got 5."),
        ('{"schedule": [[0, 81, [0, 0]]]}', "The schedule lasts 81 ticks, but an episode 80"),
    ],
)
def test_schedules_that_cannot_be_followed_are_refused(refused, tmp_path, text, sentence):
    file = tmp_path / "schedule.json"
    file.write_text(text)
    assert sentence in refused("simulate", "rc-car", "--holds", file)


def test_a_schedule_of_its_own_holds_takes_no_others(refused, tmp_path):
    file = tmp_path / "schedule.json"
    file.write_text('{"schedule": [[0, 80, [0, 0]]]}')
    assert "has its own" in refused("simulate", "rc-car", "--holds", file, "--hold", 3)
    assert "has its own" in refused("simulate", "rc-car", "--holds", file, "--control", 0, 0)


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(refused, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr("tacos.cli.simulate.simulate", None)
    for folder in ("taken", "taken/figures"):
        sentence = refused("simulate", "rc-car", "--out", tmp_path / folder)
        assert sentence.startswith(f"The folder {tmp_path / folder} cannot be made: ")
        assert sentence.endswith("; choose another --out.")


def test_a_figure_that_cannot_be_written_is_refused(refused, tmp_path):
    (tmp_path / "simulate-tumour.png").mkdir()
    sentence = refused("simulate", "tumour", "--out", tmp_path)
    assert sentence.endswith("cannot be written: Is a directory; choose another --out.")
