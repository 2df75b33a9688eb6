"""The loop: the model calls tools, sees what they give, and calls further ones until it answers."""
