"""Citu as a model of OpenAI's chat completions, for front ends that know no other protocol.

`/v1/models` lists the agents as models; `/v1/chat/completions` answers the last message of a chat.
There is no place for rows, so that an answer is Markdown with a table.
"""
