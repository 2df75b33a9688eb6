"""Find stored values that a question names; tell which are personal."""
