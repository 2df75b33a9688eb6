"""Names of tables and functions as a query writes them."""

from dataclasses import dataclass

Name = tuple[str, ...]


@dataclass(frozen=True)
class Qualified:
    """What a query names: (`name`,), (`schema`, `name`) or (`database`, `schema`, `name`)."""

    parts: Name

    @property
    def name(self) -> str:
        """The name without its schema."""
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        """The schema it is qualified with."""
        return self.parts[-2] if len(self.parts) > 1 else None
