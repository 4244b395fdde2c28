"""All studies by name."""

from synthetic_returns.experiments.studies import (
    ablation,
    anchors,
    arena,
    catch,
    chain,
    impala,
    key_to_door,
    paper,
    parts,
    pong,
    seeds,
    skiing,
    stability,
    unharmed,
    untuned,
)
from synthetic_returns.experiments.study import Study
from synthetic_returns.utils.suggestions import unknown

__all__ = ["ALL", "ARENA", "EXACT", "EXPERIMENTS", "STUDIES", "find_studies"]

ALL = "all"
# Not studies: comparisons, with results of their own kind.
ARENA, EXACT = arena.NAME, "exact"
FIGURES = (chain.STUDY, catch.STUDY, key_to_door.STUDY)  # what the paper shows: "all"
STUDIES = {
    study.name: study
    for study in (
        *FIGURES,
        *untuned.STUDIES,
        impala.STUDY,
        paper.STUDY,
        parts.STUDY,
        ablation.STUDY,
        seeds.STUDY,
        stability.STUDY,
        unharmed.STUDY,
        anchors.STUDY,
        skiing.STUDY,
        pong.STUDY,
    )
}
EXPERIMENTS = {e.name: e for study in STUDIES.values() for e in study.experiments}


def find_studies(name: str) -> tuple[Study, ...]:
    """The study of this name; "all" are the figures of the paper.

    Raises:
      ValueError: no study has this name.
    """
    if name == ALL:
        return FIGURES
    if name not in STUDIES:
        raise ValueError(unknown("study", name, [ALL, *STUDIES, ARENA, EXACT]))
    return (STUDIES[name],)
