"""The names of all commands, and what each does in one line."""

__all__ = ["COMMANDS"]

COMMANDS = {
    "train": "train an agent on a task, with or without synthetic returns",
    "evaluate": "play episodes with a trained agent",
    "runs": "list the runs of a folder: status, score, steps and size",
    "view": "show episodes of a run with their credit, in one HTML page",
    "explain": "find the steps of recorded episodes that earned the outcome",
    "report": "write an HTML page about runs: curves, quality of the credit",
    "reproduce": "repeat the paper's experiments: all seeds, figures, tables",
    "compare": "train with several credit methods and compare them",
    "sweep": "random search over settings, on one machine or many",
    "demo": "train delayed Catch with and without synthetic returns",
    "tasks": "list the tasks, or draw an episode of one",
    "credit": "list the credit methods, or explain one and its settings",
    "bench": "measure speed: the core, the tasks, the agent; how costs grow",
    "completion": "print the completion script of a shell",
}
