"""Tests of the project as a whole: its layout, documents, settings and installation."""
