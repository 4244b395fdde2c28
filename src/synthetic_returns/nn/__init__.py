"""Layers and networks: torsos, recurrent cores, heads."""
