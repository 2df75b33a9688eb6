"""What Citu costs, measured as ratios in one run; `make bench` runs everything and prints a table."""
