"""Actors in processes of their own, on one machine or many."""
