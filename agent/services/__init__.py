"""What endpoints offer beside asking: SQL given as such, exports, analysis, feedback, readiness."""
