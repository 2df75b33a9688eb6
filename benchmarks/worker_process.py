"""Reads a measured process's CPU time and memory from Linux."""

import os
import time
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SCHEDULER_CLOCK = 2  # counts nanoseconds; the others count ticks


def cpu_ms(pid: int) -> float:
    """Return user and system time of all its threads so far, in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S * 1000


def precise_cpu_ms(pid: int) -> float:
    """Return user and system time of all its threads so far, ended ones too, to the nanosecond."""
    # Linux makes the number of a process's clock of its id (man 3 clock_getcpuclockid).
    clock = (~pid << 3) | _SCHEDULER_CLOCK
    return time.clock_gettime_ns(clock) / 1e6


def most_memory_mb(pid: int) -> float:
    """Return the most physical memory it has held, in megabytes."""
    return _status_mb(pid, "VmHWM:")


def memory_mb(pid: int) -> float:
    """Return the physical memory it holds now, in megabytes; 0 when it has ended."""
    try:
        return _status_mb(pid, "VmRSS:")
    except (OSError, IndexError):  # a process that has ended but is still listed holds none
        return 0.0


def _status_mb(pid: int, field: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(field)[2].split()[0]) / 1024
