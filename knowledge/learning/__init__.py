"""What people say of answers, and what they bring, made into examples, lessons and documents.

proofs             guard and EXPLAIN for a statement that is to be kept, and what it reads
failure_analysis   why an answer was wrong
intake             examples and lessons that are brought as JSON Lines
documents          prose by its sections, and DDL by its tables
"""
