"""The language components, one module each."""
