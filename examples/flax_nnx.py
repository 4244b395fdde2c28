"""The agent of add_to_your_agent.py with networks in Flax NNX, those of synthetic returns too.

    python examples/flax_nnx.py

Synthetic returns need three functions, ``contribution``, ``gate`` and ``baseline``; any object that
has them will do, whatever made its parameters.
"""

import functools

import jax
from add_to_your_agent import HIDDEN, Network, compare, env, train
from flax import nnx


class Head(nnx.Module):
    """Two layers to one number."""

    def __init__(self, rngs):
        self.hidden = nnx.Linear(HIDDEN, 256, rngs=rngs)
        self.output = nnx.Linear(256, 1, rngs=rngs)

    def __call__(self, x):
        return self.output(jax.nn.relu(self.hidden(x)))[..., 0]


class Agent(nnx.Module):
    def __init__(self, rngs):
        self.features = nnx.Linear(env.observation_shape[0], HIDDEN, rngs=rngs)
        self.policy = nnx.Linear(HIDDEN, env.num_actions, rngs=rngs)
        self.value = nnx.Linear(HIDDEN, 1, rngs=rngs)
        self.c, self.g, self.b = Head(rngs), Head(rngs), Head(rngs)

    def __call__(self, observation):
        features = jax.nn.relu(self.features(observation))
        return features, self.policy(features), self.value(features)[..., 0]

    # What synthetic returns ask of a model.

    def contribution(self, past):
        return self.c(past)

    def gate(self, current):
        return jax.nn.sigmoid(self.g(current))

    def baseline(self, current):
        return self.b(current)


structure = nnx.graphdef(Agent(nnx.Rngs(0)))
network = Network(
    init=lambda key: nnx.state(Agent(nnx.Rngs(key))),
    apply=lambda params, observation: nnx.merge(structure, params)(observation),
    credit=lambda params: nnx.merge(structure, params),
)

if __name__ == "__main__":
    compare(functools.partial(train, network=network))
