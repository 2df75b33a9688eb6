"""The doctor: looks an installation over, and says what is wrong and what to do."""
