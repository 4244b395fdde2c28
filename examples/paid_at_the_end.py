"""Any Gymnasium environment, with all rewards of an episode paid at its end."""

import gymnasium


class PaidAtTheEnd(gymnasium.Wrapper):
    """Keeps all rewards of an episode back until it is over."""

    def reset(self, **kwargs):
        self.total = 0.0
        return self.env.reset(**kwargs)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.total += float(reward)
        over = terminated or truncated
        return observation, self.total if over else 0.0, terminated, truncated, info
