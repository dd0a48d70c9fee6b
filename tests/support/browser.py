"""Chromium, controlled through a pipe by its developer tools protocol."""

import json
import os
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --hide-scrollbars"


class Browser:
    """A page in a new process of Chromium, which the caller must close.

    folder: the folder of Chromium's profile, which is created.
    """

    def __init__(self, folder: Path) -> None:
        ours, its = os.pipe(), os.pipe()  # pipes of its input and of its output
        flags = [*FLAGS.split(), f"--user-data-dir={folder}", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ours[0]} 4>&{its[1]}', "-", CHROMIUM, *flags],
            pass_fds=(ours[0], its[1]),
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(its[1])
        self.out, self.into = os.fdopen(ours[1], "wb"), os.fdopen(its[0], "rb")
        self.numbers, self.session, self.rest = count(1), None, b""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        self.send("Page.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a command. Raises RuntimeError if Chromium returns an error."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        self.out.write(json.dumps(message).encode() + b"\0")
        self.out.flush()
        answer = self._wait(lambda said: said.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _wait(self, fits) -> dict[str, Any]:
        while True:
            while b"\0" not in self.rest:
                if not (more := os.read(self.into.fileno(), 1 << 20)):
                    raise RuntimeError("Chromium has ended")
                self.rest += more
            text, _, self.rest = self.rest.partition(b"\0")
            if fits(said := json.loads(text)):
                return said

    def open(self, address: str, width=1280, height=800, script=True, **media: str) -> None:
        """Open a page.

        address: its URL. width, height: of the window in pixels. script: whether the page's scripts
        run. media: the kind of medium, `media="print"`, or media features.
        """
        kind = media.pop("media", "")
        features = [{"name": k.replace("_", "-"), "value": v} for k, v in media.items()]
        self.send("Emulation.setEmulatedMedia", media=kind, features=features)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        for each in ("about:blank", address):  # a new address on the same page would fire no event
            self.send("Page.navigate", url=each)
            self._wait(lambda said: said.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression on the open page. A promise is awaited."""
        done = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"])
        return done["result"].get("value")

    def close(self) -> None:
        """End the process and wait for its end."""
        self.out.close()
        self.into.close()
        self.process.terminate()
        self.process.wait(timeout=30)
