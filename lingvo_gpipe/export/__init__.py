"""Trained models as TensorFlow SavedModels."""
