"""Markup put together from elements: text is escaped unless it is markup already."""

import html
from typing import Any

__all__ = ["Markup", "tag"]

EMPTY = {"img", "br", "meta", "source"}  # elements without an end


class Markup(str):
    """Text that is markup, and was made by ``tag``."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """One element with what is in it.

    A paragraph is ``tag("p", "text", tag("b", "bold"), class_="note")``.

    Args:
      name: of the element.
      *children: markup, or anything else, which is shown as text; lists are flattened and None is
        left out.
      **attributes: values are escaped; ``class_`` is class, and other underscores become dashes.
        None leaves an attribute out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in EMPTY:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{_written(children)}</{name}>")


def _written(children: Any) -> str:
    parts = []
    for child in children:
        if isinstance(child, list | tuple):
            parts.append(_written(child))
        elif child is not None:
            parts.append(child if isinstance(child, Markup) else html.escape(str(child)))
    return "".join(parts)
