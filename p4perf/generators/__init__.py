"""Text: a sweep point becomes a program, a program becomes files."""
