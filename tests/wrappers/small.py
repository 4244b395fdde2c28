"""Settings that compile and train fast."""

from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.episodic.method import Episodic
from synthetic_returns.nn.settings import TorsoSettings

METHOD = Episodic(
    encoder=TorsoSettings(sizes=(16,)),
    head_sizes=(16,),
    replay=Replay(slots=32, batch_size=8, updates_per_episode=0.5),
)
