"""The bodies of requests and answers as pydantic models, of which openapi.json is made.

Requests are checked by them (`requests`). Answers are described by them: the tests hold what is
sent against the document. `SomethingModel` and `SomethingBody` are the component `Something`.
"""
