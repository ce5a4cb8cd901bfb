"""Where and with what a benchmark ran."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import jax

PACKAGES = ("tacos-rl", "jax", "equinox", "diffrax", "gymnasium", "numpy")


def facts() -> dict[str, object]:
    """Plain values that JSON can hold."""
    return {
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "devices": [device.device_kind for device in jax.devices()],
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of the working tree, with a + after it if files were changed since; None without
    a repository."""
    try:
        commit, changes = (
            subprocess.run(
                ["git", *command],
                capture_output=True,
                text=True,
                check=True,
                cwd=Path(__file__).parent,
            ).stdout.strip()
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain"])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changes else "")
