"""What a page shows, in headless Chromium."""

import shutil
import subprocess
from pathlib import Path

import pytest

# Milliseconds of the page's own time, which runs as fast as the page has nothing to wait for.
SETTLING = 20_000
# The servers' pages ask for fonts and stars elsewhere; nothing but the loopback is answered.
LOOPBACK_ONLY = "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"


def picture(url: str, path: Path, profile: Path) -> None:
    """A picture of the page, as PNG."""
    _chromium(url, profile, f"--screenshot={path}")


def content(url: str, profile: Path) -> str:
    """The page's document as it is after its scripts have run."""
    return _chromium(url, profile, "--dump-dom")


def _chromium(url: str, profile: Path, action: str) -> str:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.fail("there is no Chromium here; install Debian's package `chromium`")
    done = subprocess.run(
        [
            program,
            "--headless",
            "--no-sandbox",  # root has none to offer; the pages are our own
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            f"--host-resolver-rules={LOOPBACK_ONLY}",
            f"--user-data-dir={profile}",
            "--window-size=1400,760",
            f"--virtual-time-budget={SETTLING}",
            action,
            url,
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout
