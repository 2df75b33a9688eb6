"""Serves Citu with gunicorn: the worker, its sockets, and the addresses it may listen on."""
