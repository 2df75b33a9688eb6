"""On whose behalf something is done."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """Who asks.

    Attributes:
        user_id: whose conversations and runs these are; None: nobody is authenticated, and nobody says.
        groups: of the API key; rights hang on them.
        acts_for_others: the key is trusted to say on whose behalf it asks.
    """

    user_id: str | None = None
    groups: tuple[str, ...] = ()
    acts_for_others: bool = False


NOBODY = Actor()
