"""``synthetic-returns credit``."""

import dataclasses
from collections.abc import Sequence

USAGE = """\
usage: synthetic-returns credit
       synthetic-returns credit NAME

Lists the credit methods: what each does, its paper, what it needs and where it
can be used. With NAME, explains one method and lists its settings. When the
list is piped, its fields are separated by tabs.
"""


def main(arguments: Sequence[str]) -> None:
    """Lists, or explains one."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return
    from synthetic_returns.commands.parsing import parse
    from synthetic_returns.credit.catalog import describe, methods_listing
    from synthetic_returns.credit.registry import find_method
    from synthetic_returns.utils.listing import is_terminal, print_listing

    if not arguments:
        print_listing(methods_listing())
        if is_terminal():
            print("\nsynthetic-returns credit NAME explains one method and lists its settings.")
        return
    if len(arguments) > 1:
        raise ValueError(f"credit takes the name of one method, not {' '.join(arguments)!r}.")
    method = find_method(arguments[0])
    print(describe(method))
    print()
    if not dataclasses.fields(method):
        print("It has no settings.")
        return
    # The flags as the command train knows them.
    flags = dataclasses.make_dataclass("Flags", [("credit", method)])
    parse(flags, ["--help"], f"synthetic-returns train TASK --credit {method.name}")
