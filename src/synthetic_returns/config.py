"""Everything that can be set, in one frozen dataclass; each field is a flag of the command line."""

import dataclasses
from typing import Annotated, Any, Generic, Literal, TypeVar

import tyro

from synthetic_returns.credit.episodic.options import EpisodicOptions
from synthetic_returns.envs.registry import find_task
from synthetic_returns.utils.checks import check_finite_number, check_positive

__all__ = ["Config"]

Task = TypeVar("Task")


@dataclasses.dataclass(frozen=True)
class Config(Generic[Task]):
    """How to train an agent on a task; ``presets`` says where the values come from."""

    task_name: Annotated[str, tyro.conf.Suppress]
    """Name of the task."""
    task: Task
    """Parameters of the task."""
    preset: Annotated[str, tyro.conf.Suppress] = "custom"
    """Name of the preset that this configuration started from."""

    # --- budget ---
    steps: int = 1_000_000
    """Environment steps to train for, over all environments."""
    num_envs: int = 32
    """Environments stepped together; also the batch of an update."""
    unroll_length: int = 20
    """Steps of each environment between two updates."""
    reuse: int = 1
    """Optimisation steps with each unroll. V-trace corrects for what the steps before changed; more
    are for tasks in which experience is dearer than arithmetic."""
    updates_per_call: int = 1
    """Unrolls and updates in one compiled call: more saves dispatching on an accelerator; on CPU
    loops around convolutions are slow. Not with credit episodic, which works on the host."""
    seed: int = 0
    """Seed of everything random."""
    engine: Literal["fused", "local", "cluster"] = "fused"
    """fused: environments written in JAX, inside the compiled unroll. local: environments on the
    host, stepped by actor threads; any task, also Gymnasium's and Atari's. cluster: any task,
    actors in processes of their own, on one machine or many."""
    actors: int = 1
    """Actors, each with environments of its own: threads, or processes of a cluster. 0 acts and
    learns in turns, and repeatably (engine: local)."""
    actor_envs: int = 0
    """Environments of each actor. An update takes unrolls of as many different actors as make up
    num_envs; unless given, that is at most half of them, so that none has to be waited for (engine:
    cluster)."""
    queue_size: int = 1
    """Unrolls that wait for the learner at most; more let actors run further ahead (engine:
    local)."""
    max_lag: int = 20
    """Updates between the beginning of an unroll and learning from it, at most: no more unrolls are
    under way than so many updates take, and what is older is not learned from (engine:
    cluster)."""
    address: str | None = None
    """The Ray cluster to use, auto for the one that this machine belongs to; one is started here
    unless given (engine: cluster)."""
    stagger: bool = True
    """Begin the environments at evenly spread points of their first episode, if they are written in
    JAX (engine: fused, cluster)."""
    devices: int = 1
    """Devices to spread the environments over; on CPU a device is a core. 0 takes all that divide
    num_envs evenly."""
    accumulate: int = 1
    """Parts of the batch whose gradients are computed one after another and added: the same update
    with less memory, where a batch does not fit."""

    # --- credit ---
    sr: bool = True
    """Learn from synthetic returns; --no-sr is the baseline agent."""
    credit: Literal["unroll", "episodic"] = "unroll"
    """Where the state-associative model learns: in the agent's own update, on unrolls with an
    episodic memory (the paper), or beside it, on whole episodes."""
    alpha: float = 1.0
    """Weight of the synthetic return in the augmented reward."""
    beta: float = 1.0
    """Weight of the environment's reward in the augmented reward."""
    reward_scale: float = 1.0
    """What rewards, synthetic returns too, are multiplied by before the agent learns from them;
    the returns that are reported are not."""
    last_reward: float = 1.0
    """With synthetic returns: the share of an episode's last reward that the agent is paid. 0 where
    all of it was earned before: synthetic returns have paid it already."""
    sa_cost: float = 1.0
    """Weight of the state-associative loss (credit: unroll)."""
    two_stage: bool = False
    """Fit b first and the memory to what b leaves (credit: unroll)."""
    memory_capacity: int | None = None
    """States that the episodic memory holds; the longest episode unless given (credit: unroll)."""
    sa_current: Literal["features", "core"] = "features"
    """What g and b see of the current state: the torso's features or the recurrent core's output
    (credit: unroll)."""

    episodic: EpisodicOptions = dataclasses.field(default_factory=EpisodicOptions)
    """The episodic learner (credit: episodic)."""

    # --- agent ---
    discount: float = 0.9
    """Discount of the TD learner."""
    trace_decay: float = 1.0
    """Lambda of V-trace."""
    entropy_cost: float = 0.01
    """Weight of the entropy bonus."""
    habit: float = 0.0
    """The probability of action 0 that the agent begins with and that the entropy bonus pulls
    towards, for tasks in which actions at random lead nowhere; 0 for all actions alike."""
    entropy_fall: float = 0.0
    """The share of it that is gone at the end of the run, falling linearly; 0 keeps it."""
    value_cost: float = 0.5
    """Weight of the value loss."""

    # --- network ---
    channels: tuple[int, ...] = (32, 64)
    """Output channels of each convolution; without any, the torso is an MLP."""
    kernel: int = 2
    """Side of the square convolution kernels."""
    stride: int = 1
    """Stride of the convolutions."""
    patches: tuple[int, ...] = ()
    """Instead of kernel and stride: the side of the patches that each of the first layers cuts its
    input into."""
    torso_sizes: tuple[int, ...] = (256,)
    """Units of each dense layer of the torso."""
    lstm_size: int = 256
    """Units of the LSTM; 0 for an agent without memory."""
    clock: bool = False
    """Tell an agent without memory how long the episode has lasted."""
    policy_size: int = 256
    """Units of the layer before the policy and value heads."""
    sa_sizes: tuple[int, ...] = (256, 256)
    """Hidden units of c and b; g has the first of these layers."""

    # --- optimiser ---
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """Which optimiser."""
    learning_rate: float = 4e-4
    """Its step size."""
    anneal: bool = False
    """Let the step size fall to zero, linearly over the steps of the run."""
    epsilon: float = 1e-4
    """RMSProp: added to the mean square, inside the root. Adam: added to the root."""
    decay: float = 0.99
    """Decay of RMSProp's mean square."""
    adam_b1: float = 0.9
    """Decay of Adam's mean."""
    adam_b2: float = 0.999
    """Decay of Adam's mean square."""
    max_grad_norm: float = 40.0
    """Gradients with a larger global norm are scaled down to it."""

    # --- reporting ---
    log_every: int = 20_000
    """Environment steps between two rows of metrics."""
    checkpoint_every: float = 60.0
    """Seconds between two checkpoints."""
    eval_episodes: int = 200
    """Episodes of the final evaluation."""
    traces: int = 3
    """Times, evenly over training, at which example episodes are recorded with c, g and b."""

    def __post_init__(self) -> None:
        for name in (
            "steps",
            "num_envs",
            "unroll_length",
            "reuse",
            "updates_per_call",
            "accumulate",
            "queue_size",
            "max_lag",
            "log_every",
            "eval_episodes",
        ):
            check_positive(name, getattr(self, name))
        for name in (
            "alpha",
            "beta",
            "entropy_cost",
            "value_cost",
            "sa_cost",
            "learning_rate",
            "reward_scale",
            "last_reward",
        ):
            check_finite_number(name, getattr(self, name))
        if self.actors < 0:
            raise ValueError(
                f"actors is {self.actors}; use 0 to act and learn in turns, or how many threads."
            )
        if self.engine == "cluster":
            self._check_actors()
        if self.traces < 0:
            raise ValueError(f"traces is {self.traces}; use 0 for none, or how many to record.")
        if self.updates_per_call > 1 and self.sr and self.credit == "episodic":
            raise ValueError(
                f"updates_per_call is {self.updates_per_call} and credit is 'episodic'; the "
                "episodic learner works between updates: set updates_per_call to 1, or credit to "
                "'unroll'."
            )
        if self.accumulate > 1 and self.num_envs % (self.accumulate * max(1, self.devices)):
            raise ValueError(
                f"num_envs is {self.num_envs}; it must be a multiple of accumulate times devices, "
                f"{self.accumulate} x {max(1, self.devices)}."
            )
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount is {self.discount}; it must lie in [0, 1].")
        if not 0 <= self.habit < 1:
            raise ValueError(f"habit is {self.habit}; it is a probability and must lie in [0, 1).")
        if not 0 <= self.entropy_fall <= 1:
            raise ValueError(
                f"entropy_fall is {self.entropy_fall}; it is a share of entropy_cost and must lie "
                "in [0, 1]."
            )
        if self.clock and self.lstm_size:
            raise ValueError(
                f"clock is True and lstm_size is {self.lstm_size}; an LSTM can count for itself: "
                "set lstm_size to 0, or clock to False."
            )
        if not self.torso_sizes:
            raise ValueError("torso_sizes is empty; the torso needs at least one dense layer.")

    def _check_actors(self) -> None:
        if self.updates_per_call != 1:
            raise ValueError(
                f"updates_per_call is {self.updates_per_call}; the engine 'cluster' makes one "
                "update at a time: set it to 1."
            )
        if self.actor_envs < 0 or self.num_envs % self.envs_per_actor:
            raise ValueError(
                f"actor_envs is {self.actor_envs}; it must divide num_envs, {self.num_envs}, or be "
                "0 for a number that suits."
            )
        if self.actors < max(1, self.unrolls_per_update):
            raise ValueError(
                f"actors is {self.actors}; an update takes unrolls of {self.unrolls_per_update} "
                f"different actors ({self.envs_per_actor} of {self.num_envs} environments each): "
                "use at least as many, or give each more with actor_envs."
            )

    @property
    def envs_per_actor(self) -> int:
        """Environments of each actor of a cluster."""
        if self.actor_envs:
            return self.actor_envs
        half = max(1, self.actors // 2)
        return self.num_envs // max(n for n in range(1, half + 1) if self.num_envs % n == 0)

    @property
    def unrolls_per_update(self) -> int:
        """Unrolls of a cluster's actors that make up a batch."""
        return self.num_envs // self.envs_per_actor

    @property
    def updates(self) -> int:
        """Unrolls of the whole run; each is learned from ``reuse`` times."""
        return max(1, self.steps // (self.num_envs * self.unroll_length))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for config.json."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Config":
        """The configuration that ``to_dict`` was called on, perhaps by way of JSON."""
        data = dict(data)
        fields = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(data.keys() - fields)
        if unknown:
            raise ValueError(
                f"the configuration has the unknown field {unknown[0]!r}; it was written by "
                "another version of synthetic-returns: use that version."
            )
        task = find_task(data["task_name"]).make(**_tuples(data["task"]))
        episodic = EpisodicOptions(**_tuples(data["episodic"]))
        return cls(**_tuples(data) | {"task": task, "episodic": episodic})


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    """JSON knows lists only; the configuration holds tuples, so that it is hashable."""
    return {name: tuple(x) if isinstance(x, list) else x for name, x in data.items()}
