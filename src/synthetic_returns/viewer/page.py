"""Self-contained HTML pages: nothing is fetched, and no text from outside becomes markup.

Text that goes into markup is escaped by ``text``; data goes into a script element of type JSON,
where ``embed`` keeps it from ending the element. What a page may do is fixed by a content security
policy with the checksums of its own style and script, so even markup that slipped in could load
and run nothing.
"""

import base64
import hashlib
import html
import json
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.utils.files import write_atomically

__all__ = ["embed", "make_page", "text", "write_page"]

GENERATOR = '<meta name="generator" content="synthetic-returns">'


def text(value: Any) -> str:
    """Any value as text inside markup or inside a quoted attribute."""
    return html.escape(str(value), quote=True)


def embed(data: Any) -> str:
    """JSON that may stand inside a script element; NaN and infinity become null."""
    plain = json.dumps(_plain(data), separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    return plain


def make_page(
    title: str, body: str, *, styles: Sequence[str], scripts: Sequence[str] = (), data: Any = None
) -> str:
    """Puts a page together.

    Args:
      title: of the window; any text.
      body: markup.
      styles: style sheets, by their paths in the package.
      scripts: scripts, likewise, run in this order.
      data: what the scripts find in the element ``data``.
    """
    style, script = _read_all(styles), _read_all(scripts)
    policy = (
        f"default-src 'none'; img-src data:; style-src {_checksum(style)}; "
        f"script-src {_checksum(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    ending = ""
    if data is not None:
        ending += f'<script type="application/json" id="data">{embed(data)}</script>\n'
    if script:
        ending += f"<script>{script}</script>\n"
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{GENERATOR}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
{ending}</body>
</html>
"""


def write_page(path: Path, page: str) -> Path:
    """Writes a page; replaces an older page of ours, but no other file."""
    if path.exists() and GENERATOR not in path.read_text(encoding="utf-8", errors="replace")[:500]:
        raise FileExistsError(
            f"{path} exists and was not made by this command; choose another --out."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page)
    return path


def read_resource(name: str) -> str:
    """A template, style sheet or script, by its path in the package."""
    return resources.files("synthetic_returns").joinpath(name).read_text(encoding="utf-8")


def _read_all(names: Sequence[str]) -> str:
    return "\n".join(read_resource(name) for name in names)


def _checksum(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _plain(value: Any) -> Any:
    """What JSON can say; numbers with five digits, which no picture can show."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
