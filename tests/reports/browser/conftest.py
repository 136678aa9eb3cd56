"""A real Chromium, spoken to in its own protocol over a pipe: no port, no driver, no package."""

import base64
import io
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PATIENCE = 30.0
# Where Chromium looks for its pipe; first out of the way, in case one of them has such a number.
AS_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in zip((3, 4), ends):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
KEYS = {"Tab": ("\t", 9), "Enter": ("\r", 13), "Escape": ("", 27), "End": ("", 35)}
KEYS |= {"Home": ("", 36), "ArrowUp": ("", 38), "ArrowDown": ("", 40)}
FLAGS = """--headless --no-sandbox --disable-gpu --remote-debugging-pipe --disable-lcd-text
    --force-color-profile=srgb""".split()


class Chromium:
    """One browser process; commands go to file descriptor 3, answers come from 4."""

    def __init__(self, profile):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        ends = map(str, (theirs_in, theirs_out))
        browser = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", AS_3_AND_4, *ends, *browser],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out, self._buffer, self._number = ours_in, ours_out, b"", 0
        self.events = []

    def call(self, method, session=None, **parameters):
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, method, session):
        """The next event of this name."""
        while True:
            for event in self.events:
                if event.get("method") == method and event.get("sessionId") == session:
                    self.events.remove(event)
                    return event["params"]
            self.events.append(self._read())

    def _read(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser did not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "the browser ended"
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def close(self):
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._in)
            os.close(self._out)


class Tab:
    """One tab: what it was asked to load, what its scripts complained about, what it shows."""

    def __init__(self, browser):
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def open(self, path: Path, fragment=""):
        # By way of an empty page: with another fragment alone the same page would stay.
        for url in ("about:blank", path.as_uri() + fragment):
            self._browser.events.clear()
            self.call("Page.navigate", url=url)
            self._browser.wait_for("Page.loadEventFired", self._session)

    def js(self, expression):
        """The value of an expression in the page."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, expression):
        """Wait until an expression holds in the page."""
        end = time.monotonic() + PATIENCE
        while not self.js(expression):
            assert time.monotonic() < end, f"never held: {expression}"

    def press(self, key, times=1):
        text, code = KEYS[key]
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                typed = text if kind == "keyDown" else ""
                pressed = {"type": kind, "key": key, "code": key, "text": typed}
                self.call("Input.dispatchKeyEvent", **pressed, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def shape(self, *, width=1360, height=900, dark=False, media=""):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def picture(self, path: Path, *, whole=False):
        """A PNG of the window, or of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(smaller(base64.b64decode(shot["data"])))

    def heard(self, method):
        """The events of this name since the page was opened."""
        self.js("0")
        return [
            event["params"]
            for event in self._browser.events
            if event.get("method") == method and event.get("sessionId") == self._session
        ]

    def requested(self):
        return [event["request"]["url"] for event in self.heard("Network.requestWillBeSent")]

    def complaints(self):
        """What went wrong in the page: exceptions, console errors, violations of its policy."""
        thrown = [str(event) for event in self.heard("Runtime.exceptionThrown")]
        logged = [event["entry"]["text"] for event in self.heard("Log.entryAdded")]
        return thrown + logged + [str(e) for e in self.heard("Runtime.consoleAPICalled")]

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)


def smaller(png):
    """The same picture with as many colours as a page of this kind has use for."""
    picture, packed = Image.open(io.BytesIO(png)).convert("RGB").quantize(128), io.BytesIO()
    picture.save(packed, "png", optimize=True)
    return packed.getvalue()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.fail("there is no Chromium here: apt-get install chromium")
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture
def tab(browser):
    opened = Tab(browser)
    opened.shape()
    yield opened
    opened.close()
