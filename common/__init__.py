"""What every layer may use: values, ports, errors, and adapters that layers share. Imports nothing from above."""
