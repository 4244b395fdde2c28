"""Credit for actions in hindsight: how likely was each action, given what came of it?"""
