"""The context lengths of models, in tokens of prompt and reply together, by the model's name.

The table's first matching line counts, so more special names stand first. A size in the name itself
(`moonshot-v1-32k`) goes before the table. The result only chooses a default, so an unknown name, or
an Azure deployment's, is no error.
"""

import re

_CONTEXTS: tuple[tuple[str, int], ...] = (
    (r"gpt-4\.1", 1_000_000),
    (r"gpt-5", 272_000),
    (r"gpt-oss", 128_000),
    (r"chatgpt-4o|gpt-4o|gpt-4\.5|gpt-4-turbo|gpt-4-\d{4}-preview|gpt-4-vision", 128_000),
    (r"gpt-4", 8_192),
    (r"gpt-3\.?5-turbo-instruct", 4_096),
    (r"gpt-3\.?5", 16_385),
    (r"o1-(mini|preview)", 128_000),
    (r"o[134]\b", 200_000),
    (r"claude-(2\.0|instant)", 100_000),
    (r"claude", 200_000),
    (r"gemini-1\.0|gemini-pro-vision", 32_000),
    (r"gemini", 1_000_000),
    (r"gemma-?3", 128_000),
    (r"gemma", 8_192),
    (r"deepseek-coder", 16_000),
    (r"deepseek", 64_000),
    (r"qwen-long|qwen-turbo|qwen-flash", 1_000_000),
    (r"qwen-plus|qwen3-coder|qwq|qvq", 128_000),
    (r"qwen|tongyi", 32_000),
    (r"glm-4-long", 1_000_000),
    (r"glm-4|glm-z1", 128_000),
    (r"chatglm|glm", 8_192),
    (r"kimi|moonshot", 128_000),
    (r"doubao", 32_000),
    (r"hunyuan|ernie|baichuan|yi-|spark|internlm|step-", 8_192),
    (r"minimax|abab", 200_000),
    (r"llama-?4", 128_000),
    (r"llama-?3[.:-]?[123]", 128_000),
    (r"llama-?3", 8_192),
    (r"codellama", 16_384),
    (r"llama", 4_096),
    (r"mistral-(large|small|medium|nemo)|ministral|pixtral|magistral|devstral", 128_000),
    (r"mixtral-8x22b", 64_000),
    (r"mistral|mixtral|codestral", 32_000),
    (r"phi-?4|phi-?3\.5", 16_000),
    (r"phi", 4_096),
    (r"command-(r|a)", 128_000),
    (r"grok", 128_000),
    (r"granite", 8_192),
)
_IN_NAME = re.compile(r"(?<![a-z0-9.])(\d{1,4})(k|m)(?![a-z0-9])")
_UNITS = {"k": 1_000, "m": 1_000_000}


def context_tokens(model: str) -> int | None:
    """Return the context of the model of that name, in tokens; None when it is not known.

    A name may begin with its maker (`openai/gpt-4o`) and end with a date or a size.
    """
    name = model.lower().rpartition("/")[2]
    written = _IN_NAME.search(name)
    if written:
        count = int(written[1])
        return count * _UNITS[written[2]]

    for pattern, size in _CONTEXTS:
        if re.search(rf"(?<![a-z0-9])(?:{pattern})", name):
            return size

    return None
