from urllib.parse import quote


def segment(value: str) -> str:
    """One segment of a path. An empty one, or one of dots, would name another path."""
    if value in ("", ".", ".."):
        raise ValueError(f"posthorn: {value!r} is not an id")
    return quote(value, safe="")
