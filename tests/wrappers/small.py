"""Settings that compile and train fast."""

from synthetic_returns.credit.episodic.options import EpisodicOptions

OPTIONS = EpisodicOptions(
    encoder_sizes=(16,), head_sizes=(16,), slots=32, batch_size=8, updates_per_episode=0.5
)
