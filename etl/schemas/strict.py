"""The base of all models of the room."""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model that refuses unknown fields and can't be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
