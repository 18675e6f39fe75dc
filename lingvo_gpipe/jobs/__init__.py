"""What the trainer binary does: flags, inspection, training, evaluation."""
