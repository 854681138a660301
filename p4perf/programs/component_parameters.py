"""What the parameters of all components have in common."""

from pydantic import BaseModel, ConfigDict


class ComponentParameters(BaseModel):
    """Base of the parameters of a component: strict, frozen, every field documented with its unit and bounds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
