"""What pairwise learning has learned, and one update of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from synthetic_returns.agents.optimizers import steady_adam
from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.credit.pairwise.model import PairwiseModel
from synthetic_returns.utils.averages import explained_variance, masked_mean, tracked, unit_of

__all__ = ["PairwiseState", "train"]


class PairwiseState(eqx.Module):
    """The model and the unit that it measures rewards in.

    Attributes:
      model: c and d.
      optimizer: Adam's state.
      square: running mean square of rewards.
      updates: how many there were.
    """

    model: PairwiseModel
    optimizer: optax.OptState
    square: Float[Array, ""]
    updates: Int[Array, ""]

    @classmethod
    def init(cls, model: PairwiseModel, learning_rate: float) -> "PairwiseState":
        """Nothing is known yet."""
        optimizer = steady_adam(learning_rate).init(eqx.filter(model, eqx.is_array))
        return cls(model, optimizer, jnp.zeros(()), jnp.zeros((), jnp.int32))

    @property
    def scale(self) -> Float[Array, ""]:
        """The unit in which the model measures rewards."""
        return unit_of(self.square)


def train(
    state: PairwiseState, episodes: EpisodeBatch, *, multi_stage: bool, learning_rate: float
) -> tuple[PairwiseState, dict[str, Float[Array, ""]]]:
    """One step of Eq. (regression_model), and of Eq. (D_hat) on what it says."""
    valid = episodes.valid
    square = masked_mean(jnp.square(episodes.reward), valid)
    square = tracked(state.square, square, state.updates)
    state = eqx.tree_at(lambda s: s.square, state, square)
    r = jnp.where(valid, episodes.reward / state.scale, 0)

    def loss(model: PairwiseModel):
        found = model.regress(episodes.source, episodes.action, r, valid, multi_stage=multi_stage)
        target = jax.lax.stop_gradient(found.contributed)
        utility = model.utility(episodes.source)
        if model.actions is None:
            d = utility[..., 0]
        else:
            # Alone, it has to know what an action earns at once, too.
            target += jax.lax.stop_gradient(found.own)
            assert episodes.action is not None
            d = jnp.sum(utility * jax.nn.one_hot(episodes.action, utility.shape[-1]), axis=-1)
        d_loss = masked_mean(jnp.square(d - target), valid)
        metrics = {
            "explained_variance": explained_variance(r, found.r_hat, valid),
            "explained_utility": explained_variance(target, d, valid),
        }
        return found.loss + d_loss, metrics

    grads, metrics = eqx.filter_grad(loss, has_aux=True)(state.model)
    updates, optimizer = steady_adam(learning_rate).update(grads, state.optimizer)
    model = eqx.apply_updates(state.model, updates)
    return PairwiseState(model, optimizer, state.square, state.updates + 1), metrics
