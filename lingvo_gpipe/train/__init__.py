"""Learner, optimizers, schedules, checkpoints and programs."""
