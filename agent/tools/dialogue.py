"""What Citu and a model say to each other in one question, and the step that both flows with tools
take: asking it.
"""

from dataclasses import dataclass, replace

from agent.progress import Write
from agent.token_batches import emitting
from agent.tools.answer_text import AnswerText
from agent.tools.first_prompt import FirstPrompt
from agent.tools.session import ToolSession
from agent.tools.transcript import Exchange, Transcript
from common.errors import PromptTooLong
from common.inquiry import Emit
from llm import Completion, OnToken, ToolOffer


@dataclass(frozen=True)
class Dialogue:
    """The dialogue so far, as the state keeps it.

    Attributes:
        told: what the user has read of the answer.
    """

    first_prompt: FirstPrompt
    transcript: Transcript
    told: str = ""

    @classmethod
    def begin(cls, first_prompt: FirstPrompt) -> "Dialogue":
        """Return a dialogue that holds nothing but the first prompt."""
        return cls(first_prompt, Transcript(first_prompt.messages))

    def with_exchange(self, exchange: Exchange) -> "Dialogue":
        """Return the dialogue with one exchange more."""
        return replace(self, transcript=self.transcript.with_exchange(exchange))

    def shortened(self) -> "Dialogue | None":
        """Return the dialogue with about half of its text; None: it was shortened before."""
        if self.first_prompt.shortened is None:
            return None

        first_prompt = self.first_prompt.shortened()
        return replace(
            self,
            first_prompt=first_prompt,
            transcript=self.transcript.shortened(first_prompt.messages),
        )


@dataclass(frozen=True)
class ModelReply:
    """A reply of the model, and the dialogue that it answers; without calls, `dialogue.told` is the
    answer.
    """

    reply: Completion
    dialogue: Dialogue


async def reply_to(
    dialogue: Dialogue, session: ToolSession, offer: ToolOffer | None, write: Write
) -> ModelReply:
    """Return the model's reply; its text is shown while it is written, as far as it is the answer.

    A dialogue that the model finds too long is sent once more, shortened, once per question.

    Args:
        write: shows the text.

    Raises:
        LimitReached: the question may not call the model again.
        LlmUnavailable: the model can't be reached, its reply was empty twice, or the dialogue is
            still too long.
    """
    with emitting(session.question.stream_tokens, write) as emit:
        try:
            return await _ask_model(dialogue, session, offer, emit)
        except PromptTooLong:
            shorter = dialogue.shortened()
            if shorter is None:
                raise

            return await _ask_model(shorter, session, offer, emit)


async def _ask_model(
    dialogue: Dialogue, session: ToolSession, offer: ToolOffer | None, emit: Emit | None
) -> ModelReply:
    text = AnswerText(dialogue.told, emit)
    on_token: OnToken | None = text.feed if emit else None
    reply = await session.ask(dialogue.transcript, offer, on_token, text.restart)
    read_so_far = (
        text.on_the_way(reply)
        if reply.tool_calls
        else text.answer(reply, session.question.answer_lang)
    )
    return ModelReply(reply, replace(dialogue, told=read_so_far))
