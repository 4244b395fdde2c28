"""``synthetic-returns view RUN``."""

import dataclasses
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import tyro

from synthetic_returns.commands.parsing import parse


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Plays episodes with the agent of a run and writes an HTML page that shows their credit.

    Half of the episodes are the agent's own. In the others it also takes random actions, so that
    you see what a mistake costs. The page works offline. It plays the episodes and shows the credit
    and the other terms of the credit method under each frame.
    """

    run: tyro.conf.Positional[Path]
    """The run directory."""
    episodes: int = 6
    """Number of episodes."""
    out: Path | None = None
    """The HTML file; by default RUN/view.html."""
    seed: int = 0
    """Seed of the episodes."""
    greedy: bool = False
    """Always take the most probable action, instead of sampling as in training."""
    gif: Path | None = None
    """Also write the best episode with its trace as a GIF or an animated PNG."""
    open: bool = False
    """Open the page in the browser."""
    serve: bool = False
    """Serve the page on localhost until Ctrl-C."""
    port: int = 0
    """Port of --serve; by default any free one."""


def main(arguments: Sequence[str]) -> None:
    """Parses, plays and writes."""
    parsed = parse(Arguments, arguments, "synthetic-returns view")

    # Only now what is slow to load.
    from synthetic_returns.viewer.view_run import record_run, write_run_view

    recorded = record_run(parsed.run, parsed.episodes, seed=parsed.seed, greedy=parsed.greedy)
    page = write_run_view(recorded, parsed.out or parsed.run / "view.html")
    print(page)
    if parsed.gif:
        from synthetic_returns.viewer.animation import write_animation

        print(write_animation(parsed.gif, recorded.recordings[0]))
    show_page(page, open_it=parsed.open, serve=parsed.serve, port=parsed.port)


def show_page(page: Path, *, open_it: bool, serve: bool, port: int = 0) -> None:
    """Opens a page in the browser, from its file or, until Ctrl-C, from localhost."""
    if not serve:
        if open_it:
            webbrowser.open(page.resolve().as_uri())
        return

    from synthetic_returns.viewer.serving import page_server

    with page_server(page, port) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        if open_it:
            webbrowser.open(address)
        server.serve_forever()
