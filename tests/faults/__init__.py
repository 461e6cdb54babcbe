"""Trainings made wrong on purpose."""
