"""What every layer may use: values, ports, errors, and the adapters behind the ports. Imports nothing from above."""
