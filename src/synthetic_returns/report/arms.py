"""Runs that belong together: those of one task, and those that differ in their seed only."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from synthetic_returns.config import Config
from synthetic_returns.report.chart import Bundle
from synthetic_returns.report.run_record import RunRecord
from synthetic_returns.utils.settings import dotted

__all__ = ["ArmRecord", "TaskRecord", "differing_settings", "group"]

BUDGET = ("seed", "reporting.")  # what the names of such settings begin with


@dataclasses.dataclass(frozen=True)
class ArmRecord:
    """The runs of one configuration, one for each seed."""

    label: str
    number: int
    runs: tuple[RunRecord, ...]

    def bundle(self, metric: str, *, smoothed: bool = False) -> Bundle:
        """One column of the metrics of all seeds."""
        curves = tuple(run.curve(metric, smoothed=smoothed) for run in self.runs)
        return Bundle(self.label, self.number, curves)

    def drift_bundle(self) -> Bundle:
        """The drift of the credit of all seeds."""
        return Bundle(self.label, self.number, tuple(run.drift() for run in self.runs))


@dataclasses.dataclass(frozen=True)
class TaskRecord:
    """The arms of one task with the same parameters."""

    config: Config
    arms: tuple[ArmRecord, ...]

    @property
    def runs(self) -> list[RunRecord]:
        """All runs."""
        return [run for arm in self.arms for run in arm.runs]


def group(records: Sequence[RunRecord]) -> list[TaskRecord]:
    """Sorts runs into tasks and arms, in the order in which they were given."""
    tasks: dict[Any, dict[Config, list[RunRecord]]] = {}
    for record in records:
        config = record.config
        arms = tasks.setdefault((config.task_name, config.task), {})
        arms.setdefault(_without_seed(config), []).append(record)
    return [_task(arms) for arms in tasks.values()]


def differing_settings(configs: Sequence[Config]) -> dict[str, list[Any]]:
    """The settings in which configurations differ, with the value of each; not their seeds.

    What only some have, such as the settings of another credit method, is no difference: the name
    of the method is.
    """
    flat = [dotted(config.to_dict()) for config in configs]
    names = dict.fromkeys(name for settings in flat for name in settings)
    found: dict[str, list[Any]] = {}
    for name in names:
        values = [settings[name] for settings in flat if name in settings]
        if not name.startswith(BUDGET) and any(value != values[0] for value in values):
            found[name] = [settings.get(name) for settings in flat]
    return found


def _task(arms: dict[Config, list[RunRecord]]) -> TaskRecord:
    # Arms with credit first: the first colour, orange, is theirs everywhere.
    ordered = sorted(arms, key=lambda config: not config.has_credit)
    first_number = 0 if ordered[0].has_credit else 1
    records = []
    for number, config in enumerate(ordered):
        label = config.credit.name if config.has_credit else "no credit"
        same = [c for c in ordered if c.credit.name == config.credit.name]
        if len(same) > 1:
            place = same.index(config)
            others = {name: values[place] for name, values in differing_settings(same).items()}
            named = ", ".join(f"{name} {value}" for name, value in others.items())
            label = f"{label}: {named}" if named else f"{label}, {place + 1}"
        runs = tuple(sorted(arms[config], key=lambda run: run.config.seed))
        records.append(ArmRecord(label, first_number + number, runs))
    return TaskRecord(ordered[0], tuple(records))


def _without_seed(config: Config) -> Config:
    return dataclasses.replace(config, seed=0)
