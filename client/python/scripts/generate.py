"""Generates src/posthorn/models.py (the objects of the API as TypedDicts, by datamodel-code-generator) and
src/posthorn/_operations.py (a typed method for every operation) from the OpenAPI document."""

import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import yaml

METHODS = ("get", "put", "post", "patch", "delete")


def models(document: Path, output: Path) -> None:
    subprocess.run(
        [
            str(Path(sys.executable).with_name("datamodel-codegen")),
            "--input", str(document), "--input-file-type", "openapi", "--output", str(output / "models.py"),
            "--output-model-type", "typing.TypedDict", "--target-python-version", "3.10", "--no-use-closed-typed-dict",
            "--enum-field-as-literal", "all", "--use-schema-description", "--use-field-description", "--disable-timestamp",
            "--formatters", "builtin",
        ],
        check=True,
    )


class Operation:
    def __init__(self, document: dict, path: str, method: str, item: dict) -> None:
        self.document, self.path, self.method, self.spec = document, path, method.upper(), item[method]
        self.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.spec["operationId"]).lower()
        parameters = [self.resolve(p) for p in item.get("parameters", []) + self.spec.get("parameters", [])]
        self.path_parameters = [p for p in parameters if p["in"] == "path"]
        self.query = [p for p in parameters if p["in"] == "query"]
        self.header = [p for p in parameters if p["in"] == "header"]

    def resolve(self, node: dict) -> dict:
        while "$ref" in node:
            found = self.document
            for key in node["$ref"][2:].split("/"):
                found = found[key]
            node = found
        return node

    def type_of(self, schema: dict) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            resolved = self.resolve(schema)
            return f"models.{name}" if schema["$ref"].startswith("#/components/schemas/") else self.type_of(resolved)
        if "enum" in schema:
            return "Literal[" + ", ".join(repr(v) for v in schema["enum"]) + "]"
        kind = schema.get("type", "")
        if isinstance(kind, list):
            kind = next(k for k in kind if k != "null")
        if kind == "array":
            return f"Sequence[{self.type_of(schema['items'])}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kind, "Any")

    def body(self) -> tuple[str, bool] | None:
        if "requestBody" not in self.spec:
            return None
        request = self.resolve(self.spec["requestBody"])
        return self.type_of(request["content"]["application/json"]["schema"]), request.get("required", False)

    def answer(self) -> str:
        found: list[str] = []
        for status, response in self.spec["responses"].items():
            if not str(status).startswith("2"):
                continue
            content = self.resolve(response).get("content", {})
            if "application/json" in content:
                found.append(self.type_of(content["application/json"]["schema"]))
            elif content:
                return "httpx.Response"
        return " | ".join(dict.fromkeys(found)) or "None"

    def method_text(self, asynchronous: bool) -> str:
        required = [f"{safe(p['name'])}: str" for p in self.path_parameters]
        optional = [
            f"{safe(p['name'])}: {self.type_of(p.get('schema', {}))} | None = None" for p in self.query + self.header if not p.get("required")
        ]
        keyed = [f"{safe(p['name'])}: {self.type_of(p.get('schema', {}))}" for p in self.query + self.header if p.get("required")]
        body = self.body()
        if body:
            required.append(f"body: {body[0]}" if body[1] else f"body: {body[0]} | None = None")
        arguments = ["self", *required, *(["*"] if keyed or optional else []), *keyed, *optional]
        answer = self.answer()
        path = re.sub(r"\{(\w+)\}", lambda m: "{" + f"segment({safe(m[1])})" + "}", self.path)
        call = [
            repr(self.method),
            f"f{path!r}" if "{" in path else repr(path),
            "{" + ", ".join(f"{p['name']!r}: {safe(p['name'])}" for p in self.query) + "}",
            "{" + ", ".join(f"{p['name']!r}: {safe(p['name'])}" for p in self.header) + "}",
            "body" if body else "None",
            repr("stream" if answer == "httpx.Response" else "none" if answer == "None" else "json"),
        ]
        words = self.spec.get("summary", "").rstrip(".") + "."
        text = "\n\n".join([words, *([self.spec["description"].strip()] if self.spec.get("description") else [])])
        text += f"\n\n{self.method} {self.path}" + (f", scope {self.spec['x-scope']}" if self.spec.get("x-scope") else "")
        doc = textwrap.indent('"""' + text.replace("\\", "\\\\") + '\n"""', "        ").rstrip()
        wait = "await " if asynchronous else ""
        cast = f"return cast({answer!r}, {wait}self._call({', '.join(call)}))" if answer != "None" else f"{wait}self._call({', '.join(call)})"
        return f"    {'async ' if asynchronous else ''}def {self.name}({', '.join(arguments)}) -> {answer!r}:\n{doc}\n        {cast}\n"


def safe(name: str) -> str:
    name = re.sub(r"\W", "_", name).lower()
    return name + "_" if keyword.iskeyword(name) else name


def main() -> None:
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    models(source, output)
    document = yaml.safe_load(source.read_text())
    operations = [Operation(document, path, m, item) for path, item in document["paths"].items() for m in METHODS if m in item]
    parts = [
        '"""Generated from the OpenAPI document. Do not edit."""\n',
        "from __future__ import annotations\n",
        "from collections.abc import Sequence",
        "from typing import Any, Literal, cast\n",
        "import httpx\n",
        "from . import models",
        "from ._paths import segment\n",
    ]
    for title, asynchronous in (("Operations", False), ("AsyncOperations", True)):
        prefix = "async " if asynchronous else ""
        parts.append(f"\nclass {title}:")
        parts.append(
            f"    {prefix}def _call(self, method: str, path: str, query: dict[str, Any], header: dict[str, Any], body: Any, answer: str) -> Any:\n"
            "        raise NotImplementedError\n"
        )
        parts.extend(o.method_text(asynchronous) for o in operations)
    (output / "_operations.py").write_text("\n".join(parts))


main()
