"""Where the time of a step goes: the GPipe paper's overhead breakdown."""
