"""A real Chromium without a window, driven by the DevTools protocol: what a page drew, told its console, and asked for."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_WAIT_S = 300.0


def chromium() -> str | None:
    """Return the path of a Chromium or Chrome of this machine, None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Browser:
    """One page of a Chromium.

    `complaints` are warnings and errors of the console and exceptions; `requests` the addresses that the page asked for.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._count = 0
        self._connection = connection
        target = self._send("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Load a page, and return when it is loaded."""
        self.call("Page.navigate", {"url": address})
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, a promise's own."""
        found = self.call("Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True})
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Return when a JavaScript condition holds."""
        deadline = time.monotonic() + _WAIT_S
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"did not come to hold: {condition}"
            self.evaluate("new Promise((done) => setTimeout(done, 20))")

    def press(self, key: str) -> None:
        """Press and release a key, named as JavaScript names it."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key, **_KEYS.get(key, {})})

    def resize(self, width: int, height: int, *, is_phone: bool = False) -> None:
        """Give the page another size, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 2 if is_phone else 1, "mobile": is_phone},
        )

    def prefer(self, scheme: str) -> None:
        """Ask for a dark or a light page."""
        self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def screenshot(self, path: Path, *, top: int = 0, height: int | None = None) -> None:
        """Write what the page looks like, from `top` on, as PNG."""
        width, view = self.evaluate("[document.documentElement.clientWidth, document.documentElement.clientHeight]")
        clip = {"x": 0, "y": top, "width": width, "height": height or view, "scale": 1}
        shot = self.call("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a method of the DevTools protocol on the page and return its result."""
        return self._send(method, params or {}, session=self._session)

    def _send(self, method: str, params: dict[str, Any], session: str = "") -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self._connection.send(json.dumps(message))
        while True:
            answer = json.loads(self._connection.recv(timeout=_WAIT_S))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._hear(answer.get("method", ""), answer.get("params", {}))

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
            self.complaints.append(json.dumps(params["args"]))


_KEYS: dict[str, dict[str, Any]] = {
    "Tab": {"windowsVirtualKeyCode": 9},
    "Enter": {"windowsVirtualKeyCode": 13, "text": "\r"},
    "End": {"windowsVirtualKeyCode": 35},
    "Home": {"windowsVirtualKeyCode": 36},
    "ArrowLeft": {"windowsVirtualKeyCode": 37},
    "ArrowRight": {"windowsVirtualKeyCode": 39},
}


@contextmanager
def browser() -> Iterator[Browser]:
    """Give a browser that ends with the context; the machine must have one."""
    program = chromium()
    assert program is not None, "needs Chromium (Debian: apt-get install chromium)"
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-port=0")
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *flags, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            # To 127.0.0.1 no proxy of the environment is asked.
            with connect(_address(process, Path(profile)), max_size=None, proxy=None) as connection:
                yield Browser(connection)
        finally:
            _end(process)


def _address(process: subprocess.Popen[bytes], profile: Path) -> str:
    """Return the address at which the browser listens, as it writes it into its profile."""
    file = profile / "DevToolsActivePort"
    deadline = time.monotonic() + _WAIT_S
    while not (file.is_file() and len(lines := file.read_text().split()) == len(("port", "path"))):
        assert process.poll() is None, f"Chromium ended with exit status {process.returncode}"
        assert time.monotonic() < deadline, "Chromium did not open its port"
        time.sleep(0.02)
    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # ended by itself
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_WAIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
