"""Imported last by the process that is forked, so that no fork scans what it has loaded, which would copy all of it."""

import gc

gc.collect()
gc.freeze()
