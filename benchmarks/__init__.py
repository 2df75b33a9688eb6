"""What Citu costs, measured as ratios in one run; `make bench` prints a table of everything."""
