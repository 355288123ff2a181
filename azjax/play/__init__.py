"""Interfaces for people: terminal, GTP, web server, notebook and exports."""
