"""How Params become text and back: paths, values, statements, overrides."""
