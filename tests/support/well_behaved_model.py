"""A scripted endpoint that does all that `llm.check_model` tries."""

from tests.support.openai_server import Called, Reply, Request


def well_behaved(request: Request) -> Reply:
    if request.tool_names:
        return Reply(calls=[Called(request.tool_names[0], {"table": "shop"})])
    if "codeword" in request.question:
        return Reply("kingfisher")
    if "JSON" in request.question:
        return Reply('{"type": "DATABASE", "reason": "orders"}')
    return Reply("one two three")
