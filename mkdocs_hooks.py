"""What the documentation site needs beyond the pages: files from elsewhere, and equations.

The pages are written to be read on a code host too, where ``../results/chain.png`` is a link that
works and ``math`` blocks are drawn. Here the files behind such links are added to the site, and
equations become MathML, which browsers draw without a script from the network.
"""

import re
from pathlib import Path
from typing import Any

import latex2mathml.converter
from mkdocs.structure.files import File

ROOT = Path(__file__).parent
SHARED = (
    "results/*.png",
    "results/*.csv",
    "results/table.md",
    "results/arena/*",
    "results/cluster/*.csv",
    "results/exact/*",
    "results/pong/levels.csv",
    "results/recorded/*",
    "results/replay/summary.csv",
    "results/sweep-catch/*",
    "results/wrappers/summary.csv",
    "benchmarks/peers/README.md",
    "benchmarks/results/*",
    "examples/*.py",
    "examples/*.ipynb",
)
MATH = re.compile(r"^```math\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Adds what the pages link to outside of docs/."""
    for pattern in SHARED:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links to these files around, and draws equations."""
    markdown = re.sub(r"\]\(\.\./(results|benchmarks|examples)/", r"](\1/", markdown)
    return MATH.sub(lambda found: draw_equation(found[1]), markdown)


def draw_equation(latex: str) -> str:
    """An equation as MathML, one line for each of its lines."""
    lines = [line for line in latex.strip().splitlines() if line.strip()]
    drawn = (latex2mathml.converter.convert(line, display="block") for line in lines)
    return f'<div class="equation">{"".join(drawn)}</div>'
