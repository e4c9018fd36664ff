# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium through chromedriver's plain HTTP (W3C WebDriver). Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

PACKAGES = "chromium chromium-driver"
_ELEMENT = (
    "element-6066-11e4-a52e-4f735466cecf"  # the key that the W3C standard gives a web element
)
_START_S = 60.0
_CALL_S = 120.0

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--force-prefers-reduced-motion",
    "--no-default-browser-check",
    "--disable-extensions",
    "--proxy-server=direct://",
)


class BrowserError(RuntimeError):
    """The browser did not do what it was asked; the text says which request and why."""


def missing():
    """The commands that are not there; a reader gets PACKAGES with it."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


class Browser:
    """One browser window. Use `open_browser`."""

    def __init__(self, base, width, height, profile, dark):
        # Loopback only, whatever proxy the environment names.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._base = base
        arguments = [*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        made = self._request(
            "POST",
            "/session",
            {
                "capabilities": {
                    "alwaysMatch": {
                        "browserName": "chrome",
                        "goog:chromeOptions": {
                            "args": arguments,
                            "binary": shutil.which("chromium"),
                        },
                        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                    }
                }
            },
        )
        self._base = f"{base}/session/{made['sessionId']}"

    def _request(self, method, path, body=None):
        request = urllib.request.Request(
            self._base + path,
            method=method,
            headers={"Content-Type": "application/json"},
            data=None if body is None else json.dumps(body).encode(),
        )
        try:
            with self._opener.open(request, timeout=_CALL_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            told = json.loads(error.read() or b"{}").get("value", {})
            raise BrowserError(
                f"{method} {path}: {told.get('error')}: {told.get('message')}"
            ) from error
        except OSError as error:
            raise BrowserError(f"{method} {path}: {error}") from error

    def go(self, url):
        self._request("POST", "/url", {"url": url})

    def script(self, text, *arguments):
        """The value of a function body in the page."""
        return self._request("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def find(self, selector):
        """The first element; BrowserError when there is none."""
        return self._request("POST", "/element", {"using": "css selector", "value": selector})[
            _ELEMENT
        ]

    def count(self, selector):
        return self.script("return document.querySelectorAll(arguments[0]).length", selector)

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.textContent", selector)

    def click(self, selector):
        self._request("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self._request("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def keys(self, *names):
        """Presses and releases each key on the element that has the focus; 'Ctrl+v' holds Ctrl."""
        codes = {
            "Enter": "\ue007",
            "Escape": "\ue00c",
            "Up": "\ue013",
            "Down": "\ue015",
            "Left": "\ue012",
            "Right": "\ue014",
            "Tab": "\ue004",
        }
        actions = []
        for name in names:
            held = name.startswith("Ctrl+")
            code = codes.get(name, name.removeprefix("Ctrl+"))
            if held:
                actions.append({"type": "keyDown", "value": "\ue009"})
            actions += [{"type": "keyDown", "value": code}, {"type": "keyUp", "value": code}]
            if held:
                actions.append({"type": "keyUp", "value": "\ue009"})
        self._request(
            "POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        )

    def wait(self, text, seconds=10.0):
        """Until the function body returns something true; its value."""
        end = time.monotonic() + seconds
        while True:
            value = self.script(text)
            if value:
                return value
            if time.monotonic() > end:
                raise BrowserError(f"not within {seconds:.0f} s: {text}")
            time.sleep(0.02)

    def console(self):
        """What the console said since the last call: (level, message)."""
        return [
            (entry["level"], entry["message"])
            for entry in self._request("POST", "/se/log", {"type": "browser"})
        ]

    def requested(self):
        """The addresses that pages asked for since the last call."""
        addresses = []
        for entry in self._request("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                addresses.append(message["params"]["request"]["url"])
        return addresses

    def devtools(self, command, **parameters):
        return self._request("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def quit(self):
        self._request("DELETE", "")


def _port(process):
    """The port that chromedriver took, from the line that it prints."""
    seen = b""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        ready, _, _ = select.select([process.stdout], [], [], 0.5)
        if ready:
            part = os.read(process.stdout.fileno(), 4096)
            if not part:
                break
            seen += part
            found = re.search(rb"successfully on port (\d+)", seen)
            if found:
                return int(found.group(1))
        if process.poll() is not None:
            break
    raise BrowserError(
        f"chromedriver did not start: {seen.decode(errors='replace').strip()[-400:]}"
    )


@contextlib.contextmanager
def open_browser(width=1400, height=1000, dark=False):
    """A browser of its own, with a fresh profile; gone with everything it started afterwards."""
    gone = missing()
    if gone:
        raise BrowserError(f"{' and '.join(gone)} not found: apt-get install {PACKAGES}")
    with tempfile.TemporaryDirectory(
        prefix="verbs-abi-browser-", ignore_cleanup_errors=True
    ) as home:
        environment = dict(os.environ, HOME=home, TMPDIR=home)
        with subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        ) as process:
            try:
                browser = Browser(
                    f"http://127.0.0.1:{_port(process)}",
                    width,
                    height,
                    os.path.join(home, "profile"),
                    dark,
                )
                try:
                    yield browser
                finally:
                    with contextlib.suppress(BrowserError):
                        browser.quit()
            finally:
                # Its own session: the group is chromedriver and what it started.
                for sign in (signal.SIGTERM, signal.SIGKILL):
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, sign)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=5)
                process.stdout.close()
