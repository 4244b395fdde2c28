"""The sweep: trials side by side, watched, pruned, and picked up again where they were cut off."""

import dataclasses
import time
from pathlib import Path

import numpy as np
from optuna.study import Study
from optuna.trial import Trial

from synthetic_returns.config import Config
from synthetic_returns.experiments.sweeps.ranges import Space, to_flags
from synthetic_returns.experiments.sweeps.study import (
    REPORTS,
    Settings,
    TrialState,
    ask,
    open_study,
    running_trials,
)
from synthetic_returns.training import jobs
from synthetic_returns.training.job import Job, check_ended
from synthetic_returns.training.jobs import Workers, claim_folder
from synthetic_returns.training.jobs_progress import JobsProgress
from synthetic_returns.training.metrics import read_metrics
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.files import RunError

__all__ = ["Sweep", "run_sweep"]

ROWS = 2 * REPORTS  # of metrics in a trial
HOPELESS = 3  # failures without a single success, after which something else is wrong


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What to do.

    Attributes:
      settings: what all trials share.
      space: what the rest is drawn from.
      config: what the flags mean without the drawn values.
      folder: where the trials are trained.
      storage: URL of the Optuna storage; by default a journal file in the folder.
    """

    settings: Settings
    space: Space
    config: Config
    folder: Path
    storage: str | None = None

    def job(self, trial: Trial) -> Job:
        """The training of one trial."""
        settings = self.settings
        texts = {name: self.space[name].text(x) for name, x in trial.params.items()}
        own = {"--seed": settings.seed + trial.number}
        if not any(flag.split("=")[0] == "--reporting.log-every" for flag in settings.flags):
            own["--reporting.log-every"] = max(1, settings.steps // ROWS)
        return Job(
            name=f"trial {trial.number}",
            arguments=(
                *(settings.task, "--preset", settings.preset, *settings.flags),
                *to_flags(texts, self.config),
                *(text for name, value in own.items() for text in (name, str(value))),
            ),
            out=self.folder / f"trial-{trial.number:03d}",
            steps=settings.steps,
        )


def run_sweep(sweep: Sweep, trials: int, *, workers: int | None = None) -> Study:
    """Trains until there are as many trials, in all places together; returns the record of them.

    Raises:
      JobFailed: the first trials all ended with errors.
    """
    study = open_study(sweep.settings, sweep.folder, sweep.storage)
    with (
        claim_folder(sweep.folder, "the sweep"),
        JobsProgress(trials, over=_count(study) - _count(study, TrialState.RUNNING)) as progress,
        Workers(sweep.folder, workers) as pool,
    ):
        cut_off = running_trials(study, sweep.folder, sweep.storage)
        at_work: dict[Job, Trial] = {}
        while True:
            while pool.idle and (cut_off or _count(study) < trials):
                trial = cut_off.pop(0) if cut_off else ask(study, sweep.space, sweep.folder)
                job = sweep.job(trial)
                at_work[job] = trial
                pool.start(job)
            if not at_work:
                return study
            time.sleep(jobs.POLL_SECONDS)
            progress.refresh(pool.running)
            for job in pool.running:
                if _report(study, at_work[job], job, sweep.settings) and not job.finished:
                    pool.stop(job)
                    study.tell(at_work.pop(job), state=TrialState.PRUNED)
                    progress.end(job, "pruned")
            for job, code in pool.ended():
                trial = at_work.pop(job)
                _report(study, trial, job, sweep.settings)
                if code == 0:
                    study.tell(trial, final_value(job.out, sweep.settings.metric))
                    progress.refresh([job])
                else:
                    _fail(study, trial, job, code)
                    progress.end(job, f"failed: {job.last_line()}")


def final_value(run: Path, metric: str) -> float:
    """What a finished trial is worth: the metric in its final evaluation."""
    result = Run.open(run).summary()["eval"]
    return float(result["return_mean" if metric == "return" else metric])


def progress_values(run: Path, metric: str, steps: int) -> dict[int, float]:
    """The metric over the parts of a trial that are complete, by the number of the part."""
    try:
        columns = read_metrics(run / "metrics.csv")
    except (OSError, RunError):
        return {}  # not written yet
    column = "episode_return" if metric == "return" else metric
    if column not in columns:
        return {}
    part = np.ceil(columns["env_steps"] * REPORTS / steps).astype(int)
    # A part is complete once there is a row at its end or behind it.
    reached = int(np.max(columns["env_steps"], initial=0)) * REPORTS // steps
    values: dict[int, float] = {}
    for number in range(1, min(reached, REPORTS) + 1):
        inside = columns[column][part == number]
        if np.any(~np.isnan(inside)):
            values[number] = float(np.nanmean(inside))
    return values


def _report(study: Study, trial: Trial, job: Job, settings: Settings) -> bool:
    """Writes down how far a trial has come; whether it is not worth going on with."""
    known = study.get_trials(deepcopy=False)[trial.number].intermediate_values
    unpromising = False
    for part, value in progress_values(job.out, settings.metric, settings.steps).items():
        if part not in known:
            trial.report(value, part)
            unpromising = bool(trial.should_prune())
    return unpromising


def _count(study: Study, *states: TrialState) -> int:
    """Of all trials, or of those in some states."""
    return len(study.get_trials(deepcopy=False, states=states or None))


def _fail(study: Study, trial: Trial, job: Job, code: int) -> None:
    """Settings that cannot be trained are a result too; unless nothing can be."""
    trial.set_user_attr("failure", job.last_line())
    study.tell(trial, state=TrialState.FAIL)
    states = [other.state for other in study.get_trials(deepcopy=False)]
    if states.count(TrialState.FAIL) >= HOPELESS and TrialState.COMPLETE not in states:
        check_ended(job, code)
