"""On whose behalf something is done."""

from dataclasses import dataclass

ANONYMOUS = "anonymous"  # the user id for requests that name no user


@dataclass(frozen=True)
class Actor:
    """Who asks.

    Attributes:
        user_id: whose conversations and runs these are; None: nobody is authenticated, and the request names nobody.
        groups: of the API key; rights depend on them.
        acts_for_others: the key is trusted to say on whose behalf it asks.
        is_vouched_for: whether anybody but the request says that it is this user: a key, or that it comes from this
            machine's own user. Rights to rows depend on the user only then.
    """

    user_id: str | None = None
    groups: tuple[str, ...] = ()
    acts_for_others: bool = False
    is_vouched_for: bool = True

    @property
    def owner(self) -> str:
        """The user under whose name conversations, runs and audit lines are kept; `anonymous` when there is none."""
        return self.user_id or ANONYMOUS


NOBODY = Actor()
