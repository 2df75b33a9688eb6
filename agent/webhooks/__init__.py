"""Webhooks: what operators are told when it happens, by signed requests to an address of theirs.

`OperatorEvents` notices what is worth telling, `WebhookSender` tells it.
"""
