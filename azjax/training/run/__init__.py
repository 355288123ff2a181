"""What surrounds a run: directory, schedule, checkpoints, display, processes."""
