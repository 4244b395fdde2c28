"""The outer loop: from a configuration to a finished run directory."""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from synthetic_returns.acting.evaluation import evaluate
from synthetic_returns.config import Config
from synthetic_returns.engines.credit import check_credit
from synthetic_returns.engines.engine import ActorFailed, Engine, make_engine
from synthetic_returns.engines.settings import ClusterSettings, FusedSettings
from synthetic_returns.training.checkpoints import Checkpoints
from synthetic_returns.training.loggers.base import check_loggers, make_logger
from synthetic_returns.training.run_config import read_config
from synthetic_returns.training.runs import Run, RunError, default_run_path
from synthetic_returns.training.stop_requests import stop_requests
from synthetic_returns.training.trace_log import show_traces
from synthetic_returns.training.trace_recorder import TraceRecorder
from synthetic_returns.training.traces import trace_points
from synthetic_returns.training.wall_clock import WallClock
from synthetic_returns.utils.process_memory import peak_mb
from synthetic_returns.utils.settings import dotted

__all__ = [
    "Progress",
    "TrainingStopped",
    "difference",
    "train",
    "train_seeds",
]

EXPLODED = 1e12  # a loss beyond this is not coming back
PATIENCE = 1.0  # seconds that one call of the engine may take: a request to stop waits for it

Progress = Callable[[int, dict[str, float]], None]


class TrainingStopped(RuntimeError):
    """Training cannot go on, or was asked to stop; the run directory can be resumed."""


def train(
    config: Config,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    log: Sequence[str] = (),
) -> Run:
    """Trains one agent and evaluates it; everything is in the run directory that is returned.

    Args:
      config: what to do, for instance a preset.
      out: the run directory; by default the next free one under ``runs/``.
      resume: continue the run in ``out``, if there is one.
      progress: called after every row of metrics with the step and the row.
      log: loggers in addition to TensorBoard: ``"wandb"``, ``"mlflow"``.
    """
    return train_seeds([config], [out], resume=resume, progress=progress, log=log)[0]


def train_seeds(
    configs: Sequence[Config],
    outs: Sequence[str | Path | None],
    *,
    resume: bool = False,
    progress: Progress | None = None,
    log: Sequence[str] = (),
) -> list[Run]:
    """Trains agents that differ in their seed only, as one computation; see ``train``."""
    if resume:
        configs = [_with_own_schedules(c, out) for c, out in zip(configs, outs, strict=True)]
    config = configs[0]
    for other in configs[1:]:
        if dataclasses.replace(other, seed=config.seed) != config:
            raise ValueError("the configurations differ in more than their seed; train them apart.")
    check_loggers(log)
    check_credit(config)
    with ExitStack() as stack:
        runs = [
            stack.enter_context(_open(c, out, resume)) for c, out in zip(configs, outs, strict=True)
        ]
        engine = make_engine(config, [c.seed for c in configs])
        stack.callback(engine.close)
        checkpoints = [Checkpoints(run.path / "checkpoints") for run in runs]
        start, wall_s = _restore(engine, checkpoints)
        writers = [
            stack.enter_context(
                run.metrics(start if start else None, [make_logger(name, run) for name in log])
            )
            for run in runs
        ]
        recorder, reporting = TraceRecorder(config.task), config.reporting
        traces_due = [at for at in trace_points(config.steps, reporting.traces) if at > start]
        clock = WallClock(wall_s)
        step = saved = start

        def save() -> None:
            nonlocal saved
            for index, store in enumerate(checkpoints):
                store.save(step, *_snapshot(engine, index, clock.total()))
            saved = step
            clock.restart("checkpoint")

        logged = step
        failure: ActorFailed | None = None
        with stop_requests() as stop:
            rate = 0.0  # environment steps per second, once there was a report
            while step < config.steps and not stop:
                # At fixed steps, so that an interrupted run reports at the same ones.
                report_at = (step // reporting.log_every + 1) * reporting.log_every
                until = min([report_at, config.steps, *traces_due[:1]]) - step
                until = min(until, max(1, int(rate * PATIENCE)))
                try:
                    updates = engine.step(-(-until // engine.steps_per_update))
                except ActorFailed as error:
                    failure = error
                    break
                step += updates * engine.steps_per_update
                if traces_due and step >= traces_due[0]:
                    traces_due = [at for at in traces_due if at > step]
                    for index, (run, c) in enumerate(zip(runs, configs, strict=True)):
                        agent, explainer = engine.agent(index), engine.explainer(index)
                        recorder.record(run.path, step, c.seed, agent, explainer)
                        show_traces(writers[index], c, run.path)
                if step >= min(report_at, config.steps):
                    rows = engine.report()
                    rate = (step - logged) / clock.lap()
                    logged = step
                    for writer, row, run in zip(writers, rows, runs, strict=True):
                        row |= {"wall_s": clock.total(), "steps_per_s": rate}
                        writer.write(step, row)
                        _check_sane(row, step, run, saved)
                    if progress:
                        progress(step, rows[0])
                    if clock.since("checkpoint") >= reporting.checkpoint_every:
                        save()
            if step > saved:
                save()
        if step < config.steps:
            why = f" ({failure})" if failure else ""
            raise TrainingStopped(
                f"stopped at step {step:,} of {config.steps:,}{why}; "
                f"continue with --resume {runs[0].path}"
            ) from failure

        wall_s = clock.total()
        for index, run in enumerate(runs):
            agent = engine.agent(index)
            seed = configs[index].seed
            result = evaluate(config.task, agent.network, reporting.eval_episodes, 10_000 + seed)
            run.write_summary(
                {
                    "task": config.task_name,
                    "preset": config.preset,
                    "agent": config.agent.name,
                    "credit": config.credit.name,
                    "seed": seed,
                    "env_steps": step,
                    "wall_s": wall_s,
                    "steps_per_s": step / wall_s,
                    "peak_memory_mb": peak_mb(),
                    "eval": result.summary(),
                }
            )
            writers[index].show(
                step, {f"eval/{name}": value for name, value in result.summary().items()}
            )
        return runs


def _with_own_schedules(config: Config, out: str | Path | None) -> Config:
    """The configuration of a run that goes on: its schedules are those that it began with.

    Schedules that were stretched to the new number of steps would go back up.
    """
    if out is None or not Path(out).exists():
        return config
    before = read_config(Run.open(out), named=config.task_name)
    if config.schedule_steps is None and config.steps != before.steps:
        config = config.changed(schedule_steps=before.schedule_steps or before.steps)
    end = config.schedule_steps
    if config.optimizer.anneal and end is not None and config.steps > end:
        raise RunError(
            f"{out} was planned for {end:,} steps, at which its learning rate is zero, so "
            f"nothing would be learned up to {config.steps:,}: add --schedule-steps {config.steps} "
            "to stretch its schedules, which raises the learning rate again, or start a new run"
        )
    return config


def _open(config: Config, out: str | Path | None, resume: bool) -> Run:
    """A new run, or the one to go on with."""
    if out is None:
        agent = [] if config.agent.name == "impala" else [config.agent.name]
        out = default_run_path("runs", config.task_name, config.preset, *agent, config.credit.name)
    if resume and Path(out).exists():
        run = Run.open(out, write=True)
        before = read_config(run, named=config.task_name)
        # Training for longer, or elsewhere, is not another experiment.
        free: dict[str, Any] = {"steps": config.steps, "schedule_steps": config.schedule_steps}
        if isinstance(config.engine, ClusterSettings) and isinstance(
            before.engine, ClusterSettings
        ):
            free["engine.address"] = config.engine.address
            free["engine.actors"] = config.engine.actors
        if isinstance(config.engine, FusedSettings) and isinstance(before.engine, FusedSettings):
            free["engine.updates_per_call"] = config.engine.updates_per_call
        if before.changed(free) != config:
            run.close()
            raise RunError(
                f"{out} was started with other settings ({difference(before, config)}); "
                "resume it with its own, or choose another --out"
            )
        run.change_config(config.to_dict())
        return run
    return Run.create(out, config.to_dict(), sys.argv)


def difference(before: Config, now: Config) -> str:
    """Names the settings in which two configurations differ.

    Of another engine, credit method or optimiser the name says enough, and what both have.
    """
    a, b = dotted(before.to_dict()), dotted(now.to_dict())
    return ", ".join(
        f"{name}: {a[name]!r} then, {b[name]!r} now"
        for name in a
        if a[name] != b.get(name, a[name])
    )


def _snapshot(engine: Engine, index: int, wall_s: float) -> tuple[dict[str, Any], Any]:
    """The state of one seed, and its replay, if it has one."""
    snapshot = engine.snapshot(index)
    replay = snapshot.pop("replay", None)
    return {"engine": snapshot, "wall_s": wall_s}, replay


def _restore(engine: Engine, checkpoints: Sequence[Checkpoints]) -> tuple[int, float]:
    """Goes on from the newest checkpoints, if there are any; the step and the time spent."""
    steps = {store.latest_step() for store in checkpoints}
    if steps == {None}:
        return 0, 0.0
    if len(steps) > 1:
        raise RunError(f"the seeds stopped at different steps ({steps}); resume each on its own.")
    step, wall_s, snapshots = 0, 0.0, []
    for index, store in enumerate(checkpoints):
        template, replay = _snapshot(engine, index, 0.0)
        step, tree = store.restore(template)
        if replay is not None:
            tree["engine"]["replay"] = store.restore_replay(replay, step)
        snapshots.append(tree["engine"])
        wall_s = tree["wall_s"]
    engine.restore(snapshots)
    return step, wall_s


def _check_sane(row: dict[str, float], step: int, run: Run, saved: int) -> None:
    for name in ("loss/total", "grad_norm"):
        if not abs(row.get(name, 0)) <= EXPLODED:  # there is none before the first update
            remedy = f"the checkpoint of step {saved} is kept" if saved else "nothing was saved yet"
            raise TrainingStopped(
                f"{name} is {row[name]} at step {step} of {run.path}: training diverged and "
                f"{remedy}; try a smaller --optimizer.learning-rate or --reward.alpha."
            )
