"""Machine translation: parallel text, its input, models."""
