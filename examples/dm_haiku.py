"""The agent of add_to_your_agent.py with networks in Haiku, those of synthetic returns too.

    python examples/dm_haiku.py

Haiku's networks are pure functions of their parameters: bound to them, they are the three functions
that synthetic returns need.
"""

import functools
from typing import Any, NamedTuple

import haiku as hk
import jax
from add_to_your_agent import HIDDEN, Network, compare, env, train


def define():
    features = hk.Sequential([hk.Linear(HIDDEN), jax.nn.relu], name="features")
    policy, value = hk.Linear(env.num_actions, name="policy"), hk.Linear(1, name="value")
    c, g, b = (hk.nets.MLP([256, 1], name=name) for name in "cgb")

    def act(observation):
        x = features(observation)
        return x, policy(x), value(x)[..., 0]

    def contribution(past):
        return c(past)[..., 0]

    def gate(current):
        return jax.nn.sigmoid(g(current))[..., 0]

    def baseline(current):
        return b(current)[..., 0]

    def everything(observation):  # every network once, so that all parameters are drawn
        x, *_ = act(observation)
        return contribution(x), gate(x), baseline(x)

    return everything, (act, contribution, gate, baseline)


functions = hk.without_apply_rng(hk.multi_transform(define))
act, contribution, gate, baseline = functions.apply


class Credit(NamedTuple):
    """Haiku's functions with their parameters."""

    params: Any

    def contribution(self, past):
        return contribution(self.params, past)

    def gate(self, current):
        return gate(self.params, current)

    def baseline(self, current):
        return baseline(self.params, current)


network = Network(
    init=lambda key: functions.init(key, jax.numpy.zeros((1, *env.observation_shape))),
    apply=act,
    credit=Credit,
)

if __name__ == "__main__":
    compare(functools.partial(train, network=network))
