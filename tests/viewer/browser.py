"""A headless Chromium for the tests of the pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Without a sandbox, because tests may run as root; and quiet, so that every request is the page's.
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def find_chromium() -> str:
    """The browser; where there is none, the test is skipped, but never in CI."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        message = f"no browser ({', '.join(NAMES)}): `make browser` installs one as root"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


@contextmanager
def open_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that is open, and what it said and asked for."""

    def __init__(self, browser: Any, page: Path, *, width: int = 1280, scheme: str = "light"):
        viewport = {"width": width, "height": 900}
        self._context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.tab = self._context.new_page()
        self.said: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.address = page.resolve().as_uri()
        self.tab.goto(self.address)

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    @property
    def fetched(self) -> list[str]:
        """Requests beside the page itself and the pictures in it."""
        return [url for url in self.requests if url != self.address and not url.startswith("data:")]

    def step(self) -> int:
        """The step whose frame is shown."""
        return int(self.tab.locator("#frame").get_attribute("data-step"))

    def wait_until_step(self, step: int) -> None:
        """Waits while the page plays; looked at from here, because the page runs no other code."""
        for _ in range(500):
            if self.step() >= step:
                return
            self.tab.wait_for_timeout(20)
        pytest.fail(f"the page did not come to step {step}: it is at {self.step()}")

    def red_of_frame(self) -> int:
        """The red of the pixel in the middle of the first cell of the frame."""
        # On a canvas of its own: Chromium warns about reading one that is drawn to again and again.
        return self.tab.evaluate(
            """() => {
              const copy = document.createElement("canvas");
              const context = copy.getContext("2d", { willReadFrequently: true });
              context.drawImage(document.getElementById("frame"), -9, -9);
              return context.getImageData(0, 0, 1, 1).data[0];
            }"""
        )
