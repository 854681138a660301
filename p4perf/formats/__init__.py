"""FOREIGN FILES: pos trees, MoonGen output, captures, specifications of SWX, Extra-P."""
