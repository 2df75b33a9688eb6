"""What users say of answers: found, proven, and learnt from."""
