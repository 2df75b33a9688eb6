"""Values, ports, errors and shared adapters that every layer may use; imports none of them."""
