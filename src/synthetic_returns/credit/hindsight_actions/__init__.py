"""Credit for actions in hindsight: how likely was each action, given its outcome?"""
