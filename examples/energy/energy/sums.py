"""The additions of a program as functions in C."""

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, Generator
from p4perf.programs import ir


def constants(program):
    """What a program adds, in order."""
    found = []
    for action in program.actions:
        for statement in action.body:
            match statement:
                case ir.Assign(_, ir.BinaryOp("+", _, ir.Const(value))):
                    found.append(value)
                case ir.SetEgress():
                    pass
                case _:
                    raise CapabilityError(f"sums has no {type(statement).__name__}")
    return found


class Sums(Generator):
    name = "sums"
    summary = "C functions with the additions of a program and of its baseline"

    def generate(self, workload, traffic):
        programs = {"program": workload.program, "baseline": workload.baseline}
        return tuple(
            GeneratedFile(f"{name}.c", (self.render("sum.c.j2", name=name, constants=constants(program)),))
            for name, program in programs.items()
        )
