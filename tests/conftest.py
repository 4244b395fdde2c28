"""Strictness for the whole test run: shapes, dtypes and ranks are checked everywhere."""

import ctypes
import functools
import gc
import os
import threading
from importlib.metadata import version
from pathlib import Path

import jax
import pytest
from jax._src.interpreters import mlir
from jaxtyping import install_import_hook

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


def _modules_with_arrays() -> list[str]:
    """The modules whose annotations say shapes, which nobody but a run can check."""
    source = Path(__file__).parent.parent / "src"
    files = [path for path in source.rglob("*.py") if "jaxtyping" in path.read_text()]
    return [".".join(path.relative_to(source).with_suffix("").parts) for path in sorted(files)]


# Every annotated function in them is checked at run time while the tests run. The others are left
# to pyright: a check at every call made tests that write long tables up to three times slower.
_hook = install_import_hook(_modules_with_arrays(), "beartype.beartype")


def pytest_configure(config: pytest.Config) -> None:
    """Saves compiling, which takes most of the time: quick compilation, and a cache of programs.

    As environment variables too, so that the processes which tests start share them. The slow tests
    compile as users do.
    """
    # Tracing and compiling make very many objects that live on: looking through all of them for
    # garbage after every 700 took an eighth of the time.
    gc.set_threshold(100_000, 20, 20)
    if config.getoption("markexpr") != "slow":
        _compile_quickly()
    cache = getattr(config, "cache", None)  # -p no:cacheprovider switches it off
    if cache is not None:
        directory = str(cache.mkdir("jax"))
        jax.config.update("jax_compilation_cache_dir", directory)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = directory
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def _compile_quickly() -> None:
    """Most programs run for milliseconds; tests that train for a minute take a little longer so."""
    jax.config.update("jax_disable_most_optimizations", True)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    if version("jaxlib").startswith("0.10."):  # a flag that XLA does not know ends the process
        # One object file for each program: half as many mappings, and an eighth less time.
        ours = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ours}".strip()
    # Every program that JAX lowers gets a context of its own: 5 ms, and 2 MB for as long as the
    # program is kept. A test run lowers thousands, most of them for a single operation. A context
    # is not made for several threads: each has one.
    make = getattr(mlir, "make_ir_context", None)
    if make is not None:
        contexts = functools.cache(lambda thread: make())
        mlir.make_ir_context = lambda: contexts(threading.get_ident())


# Each takes half a minute, most of them in processes of their own. Started last, one of them would
# keep a worker busy for long after the others have finished.
LONGEST = (
    "test_reproduce_trains_records_and_reuses",
    "test_four_devices_give_the_numbers_of_one",
    "test_a_run_survives_being_killed_and_stopped",
    "test_train_view_and_wrap_elsewhere",
    "test_chain",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests come first; what is left of a worker's share, others may steal."""
    items.sort(key=lambda item: getattr(item, "originalname", item.name) not in LONGEST)


MAPPINGS = 25_000  # Linux allows a process 65,530; these are programs of about two gigabytes


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs():
    """Every program maps memory, and a process may have so many mappings and then crashes.

    Until then they are kept: the next module needs many of them again.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") < MAPPINGS:
        return
    jax.clear_caches()
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # else a worker grows to 4 GB, most of them free
        libc.malloc_trim(0)


@pytest.fixture(scope="session")
def chain_run(tmp_path_factory) -> Path:
    """A run that has learned nothing, in seconds."""
    from synthetic_returns.training.trainer import train
    from tests.small import UPDATE, small_config

    config = small_config("episodic", {"reporting.traces": 2}, steps=6 * UPDATE)
    return train(config, out=tmp_path_factory.mktemp("runs") / "chain").path
