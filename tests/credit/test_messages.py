"""Bad input to the core gets an error that names the argument, the value and the rule.

The run-time shape checks of the test run would refuse these calls before our own checks do, so they
are made in a process without them, as a user would.
"""

import json
import subprocess
import sys

import pytest

CALLS = """
import json
import jax, jax.numpy as jnp
from synthetic_returns import EpisodicMemory, StateAssociativeModel, associate, augmented_reward

model = StateAssociativeModel(3, key=jax.random.key(0))
memory = EpisodicMemory.empty(2, 4, 3)
good = dict(features=jnp.zeros((5, 2, 3)), first=jnp.zeros((5, 2), bool), reward=jnp.zeros((5, 2)))
nan = good["reward"].at[3, 1].set(jnp.nan)

def call(**bad):
    return associate(model, memory, **{**good, **bad})

calls = {
    "rank": lambda: call(features=jnp.zeros((5, 3))),
    "feature size": lambda: call(features=jnp.zeros((5, 2, 7))),
    "batch": lambda: call(features=jnp.zeros((5, 9, 3))),
    "first": lambda: call(first=jnp.zeros((1, 2), bool)),
    "reward": lambda: call(reward=jnp.zeros((5, 1))),
    "reward rank": lambda: call(reward=jnp.zeros(5)),
    "valid": lambda: call(valid=jnp.ones((5, 1), bool)),
    "current": lambda: call(current=jnp.zeros((4, 2, 3))),
    "nan": lambda: call(reward=nan),
    "nan in jit": lambda: jax.block_until_ready(jax.jit(lambda r: call(reward=r).loss)(nan)),
    "capacity": lambda: EpisodicMemory.empty(2, 0, 3),
    "size": lambda: EpisodicMemory.empty(2, 4, -1),
    "layers": lambda: StateAssociativeModel(3, contribution_layers=(0,), key=jax.random.key(0)),
    "alpha": lambda: augmented_reward(jnp.zeros(2), jnp.zeros(2), alpha=float("nan"), beta=1.0),
    "c_t": lambda: augmented_reward(jnp.zeros(2), jnp.zeros(1), alpha=1.0, beta=1.0),
}
messages = {}
for name, function in calls.items():
    try:
        function()
        messages[name] = "no error"
    except Exception as error:
        messages[name] = f"{type(error).__name__}: {error}"
print(json.dumps(messages))
"""

EXPECTED = {
    "rank": ["ValueError", "features", "(5, 3)", "rank 3", "[T, B, D]"],
    "feature size": ["ValueError", "features", "(5, 2, 7)", "size 7", "must have size 3"],
    "batch": ["ValueError", "features", "(5, 9, 3)", "must have size 2"],
    "first": ["ValueError", "first", "(1, 2)", "must have size 5"],
    "reward": ["ValueError", "reward", "(5, 1)", "must have size 2"],
    "reward rank": ["ValueError", "reward", "(5,)", "rank 2"],
    "valid": ["ValueError", "valid", "(5, 1)"],
    "current": ["ValueError", "current", "(4, 2, 3)", "must have size 5"],
    "nan": ["ValueError", "reward[3, 1]", "nan", "must be finite"],
    "nan in jit": ["Error", "reward holds a NaN", "must be finite"],
    "capacity": ["ValueError", "capacity is 0", "at least 1"],
    "size": ["ValueError", "size is -1", "at least 1"],
    "layers": ["ValueError", "layer size is 0", "at least 1"],
    "alpha": ["ValueError", "alpha is nan", "finite"],
    "c_t": ["ValueError", "c_t", "(1,)", "must have size 2"],
}


@pytest.fixture(scope="module")
def messages():
    process = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", EXPECTED)
def test_message(messages, name):
    for part in EXPECTED[name]:
        assert part in messages[name]


def test_every_bad_call_is_tested(messages):
    assert messages.keys() == EXPECTED.keys()
