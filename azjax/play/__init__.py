"""Interfaces for people: terminal, GTP, UCI, web server, notebook and exports."""
