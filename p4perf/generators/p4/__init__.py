"""P4_16: one description of a program in the dialects that compilers really take.

All dialects extend the template ``p4/base.p4.j2``; what is said in other words stands in the template of a dialect and
in the module of its name here, beside its table of capabilities.
"""
