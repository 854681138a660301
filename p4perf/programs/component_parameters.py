"""What the parameters of all components have in common."""

from pydantic import BaseModel, ConfigDict

from p4perf.errors import CapabilityError


class ComponentParameters(BaseModel):
    """Base of the parameters of a component: strict, frozen, every field documented with its unit and bounds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def refusal(self, name: str, message: str, hint: str | None = None) -> CapabilityError:
        """The refusal of the value of a parameter, to be raised."""
        return CapabilityError(message, key=f"program.parameters.{name}", hint=hint)
