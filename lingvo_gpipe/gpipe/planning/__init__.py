"""What cells cost, how they are cut, which memory and time that takes."""
