"""For people who play."""
