"""What is known of a database: its names, its values, and how people write them."""
