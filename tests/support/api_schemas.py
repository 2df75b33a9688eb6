"""The bodies that the API's description allows."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from openapi_schema_validator import OAS31Validator
from referencing import Registry, Resource

SPECIFICATION: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "api" / "openapi.json").read_text("utf-8")
)


@cache
def _validator(schema: str) -> OAS31Validator:
    registry = Registry().with_resource("urn:api", Resource.opaque(SPECIFICATION))
    return OAS31Validator({"$ref": f"urn:api#/components/schemas/{schema}"}, registry=registry)


def check_schema(schema: str, body: Any) -> None:
    """Fail unless the body is what the named schema of the description allows."""
    _validator(schema).validate(body)
