"""Properties that must hold whatever comes: random cases by the thousand."""
