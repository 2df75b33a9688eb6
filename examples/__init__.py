"""Extensions to copy and change: each is registered by its setting as `module:name`."""
