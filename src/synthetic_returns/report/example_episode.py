"""Episodes of a run in a report: its credit over time, and what happened."""

import functools

from synthetic_returns.report.run_record import RunRecord
from synthetic_returns.training.traces import Player, read_traces
from synthetic_returns.viewer.inline import in_words, picture_source
from synthetic_returns.viewer.main_line import common_limits
from synthetic_returns.viewer.markup import Markup, tag
from synthetic_returns.viewer.meaning import credit_in_words
from synthetic_returns.viewer.recording import Recording

__all__ = ["episode_figure", "example_episodes"]

SIZE = (1180, 240)
NARROW = (460, 230)  # for a phone, where the large one would be too small to read


def example_episodes(record: RunRecord) -> list[Markup]:
    """The last episodes that the run recorded, the agent's own and one with random actions.

    They are pictures on one scale, after a sentence that says what their credit means.
    """
    players: dict[Player, str] = {
        "agent": "The best of eight episodes of the agent",
        "exploring": "An episode with random actions in between",
    }
    recordings, captions = [], []
    for player, name in players.items():
        for trace in read_traces(record.opened.path, player, newest=1):
            recordings.append(Recording.from_trace(trace, record.config.task))
            captions.append(
                f"{name}, after {trace.step:,} steps of training, "
                f"seed {record.config.seed}: return {recordings[-1].total:.3g}."
            )
    if not recordings:
        return []
    limits = common_limits(recordings)
    return [
        tag("p", credit_in_words(recordings), class_="meaning"),
        *(
            episode_figure(recording, caption, limits)
            for recording, caption in zip(recordings, captions, strict=True)
        ),
    ]


def episode_figure(
    recording: Recording, caption: str, limits: tuple[float, float] | None = None
) -> Markup:
    """An episode as a picture of its credit, for light and dark, wide and narrow screens.

    Args:
      recording: the episode.
      caption: what is said about it.
      limits: the smallest and the largest credit shown; by default those of the episode.
    """
    draw = functools.partial(picture_source, recording, limits=limits)
    return tag(
        "figure",
        tag(
            "picture",
            tag("source", srcset=draw(NARROW, dark=True),
                media="screen and (max-width: 40rem) and (prefers-color-scheme: dark)"),
            tag("source", srcset=draw(NARROW, dark=False),
                media="screen and (max-width: 40rem)"),
            tag("source", srcset=draw(SIZE, dark=True),
                media="screen and (prefers-color-scheme: dark)"),
            tag("img", src=draw(SIZE, dark=False), alt=in_words(recording)),
        ),
        tag("figcaption", caption),
        class_="episode",
    )  # fmt: skip
