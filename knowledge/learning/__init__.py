"""What people say of answers, and what they bring, made into examples, lessons and documents.

proofs             guard and EXPLAIN for a statement that is to be kept, and what it reads
failure_analysis   why an answer was wrong
lines              JSON Lines of examples, in and out
documents          sections of prose, and of DDL, as documents
"""
