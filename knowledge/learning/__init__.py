"""Make examples, lessons and documents of feedback on answers, and of files that people bring.

proofs             guard and EXPLAIN for a statement that is to be kept, and what it reads
failure_analysis   why an answer was wrong
intake             examples and lessons that are brought as JSON Lines
documents          prose by its sections, and DDL by its tables
"""
