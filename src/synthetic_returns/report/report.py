"""The report: one page about one or many runs."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from synthetic_returns.envs.registry import find_task
from synthetic_returns.report import sections
from synthetic_returns.report.arms import TaskRecord, group
from synthetic_returns.report.credit_quality import CreditQuality, credit_quality
from synthetic_returns.report.run_record import RunRecord
from synthetic_returns.report.styles import STYLES
from synthetic_returns.viewer.markup import Markup, tag
from synthetic_returns.viewer.opened_run import find_runs
from synthetic_returns.viewer.page import make_page, write_page

__all__ = ["Measured", "measure", "read_records", "write_report"]

Measured = list[tuple[RunRecord, CreditQuality]]


def read_records(paths: Sequence[Path]) -> list[RunRecord]:
    """Reads runs, or folders of them."""
    return [RunRecord.read(opened) for opened in find_runs(paths)]


def measure(records: Sequence[RunRecord]) -> Measured:
    """The quality of the credit of every run that has an agent and a measure."""
    found: Measured = []
    for record in records:
        if record.config.has_credit and record.opened.has_checkpoint:
            _, agent, explainer = record.opened.load()
            if quality := credit_quality(record.config.task, agent, explainer):
                found.append((record, quality))
    return found


def write_report(records: Sequence[RunRecord], measured: Measured, out: Path) -> Path:
    """Writes the page."""
    tasks = group(records)
    names = dict.fromkeys(find_task(task.config.task_name).name for task in tasks)
    title = f"Synthetic returns: {', '.join(names)}"
    made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    facts = {"runs": len(records), "written": made}
    body = tag(
        "div",
        tag("header", tag("h1", title), facts_list(facts), _contents(tasks)),
        tag("main", [_task(index, task, measured) for index, task in enumerate(tasks)]),
    )
    return write_page(out, make_page(title, body, styles=STYLES))


def _task(index: int, task: TaskRecord, measured: Measured) -> Markup:
    known = find_task(task.config.task_name)
    own = {id(run) for run in task.runs}
    qualities = [(record, quality) for record, quality in measured if id(record) in own]
    parameters = {
        name: value
        for name, value in task.config.to_dict()["task"].items()
        if value != known.parameters()[name]
    }
    heading = known.name + "".join(f", {name} {value}" for name, value in parameters.items())
    parts = {
        "Where the credit goes": sections.credit(task, qualities),
        "Learning curves": sections.curves(task),
        "Steps to solve": sections.outcomes(task),
        "The credit method": sections.diagnostics(task),
        "Throughput": sections.throughput(task),
        "Settings": sections.settings(task),
        "Commands": sections.commands(task),
    }
    return tag(
        "section",
        tag("h2", heading, id=f"task-{index}"),
        tag("p", f"To {known.description}.", class_="note"),
        [[tag("h3", name), content] for name, content in parts.items()],
    )


def facts_list(facts: dict[str, object]) -> Markup:
    """What there is to know about a page, under its title."""
    entries = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]
    return tag("dl", entries, class_="facts")


def _contents(tasks: Sequence[TaskRecord]) -> Markup | None:
    if len(tasks) < 2:
        return None
    links = [
        tag("li", tag("a", find_task(task.config.task_name).name, href=f"#task-{index}"))
        for index, task in enumerate(tasks)
    ]
    return tag("nav", tag("ul", links, class_="legend"), aria_label="Tasks")
