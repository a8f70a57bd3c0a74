"""The console's files, and pages made of them that need nothing else: no server, no network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Final

#: Where the files lie: HTML, one stylesheet, ES modules, the world's outlines.
FILES: Final = Path(__file__).parent / "console"
#: What a page of the console may do: run and ask its own server only, be framed by nobody.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_IMPORT: Final = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:class|function|const) (\w+))", re.MULTILINE)


def self_contained(page: str, data: dict[str, Any], *, title: str) -> str:
    """The HTML file *page* with its style, its modules and *data* (by id, as JSON) inside."""
    text = (FILES / page).read_text("utf-8")
    style = (FILES / "console.css").read_text("utf-8")
    entry = re.search(r'<script type="module" src="(\w+)\.js"></script>\n', text)
    link = re.search(r'<link rel="stylesheet" href="console.css">\n', text)
    assert entry is not None
    assert link is not None
    script = bundle(entry[1])
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    )
    blocks = "".join(
        f'<script type="application/json" id="{id}">{_embedded(value)}</script>\n'
        for id, value in data.items()
    )
    text = text.replace(entry[0], "").replace(link[0], head)
    text = re.sub(r"<title>.*?</title>", lambda _: f"<title>{escape(title)}</title>", text)
    return text.replace("</body>", f'{blocks}<script type="module">{script}</script>\n</body>')


def bundle(entry: str) -> str:
    """The ES module *entry* and all it imports as one: each is a function that gives its exports.

    The console's modules import names only (`import { a, b } from "./c.js";`).
    """
    parts: dict[str, str] = {}
    _collect(entry, parts)
    return "".join(parts.values())


def _collect(name: str, parts: dict[str, str]) -> None:
    if name in parts:
        return
    text = (FILES / f"{name}.js").read_text("utf-8")
    for _, imported in _IMPORT.findall(text):
        _collect(imported, parts)
    exports = ", ".join(_EXPORT.findall(text))
    text = _IMPORT.sub(lambda found: f"const {found[1]} = _{found[2]};\n", text)
    text = _EXPORT.sub("", text)
    parts[name] = f"const _{name} = (() => {{\n{text}return {{ {exports} }};\n}})();\n"


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _embedded(value: Any) -> str:
    """*value* as JSON that no HTML parser can take for markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028")


def outlines() -> Any:
    """The outlines of the world's countries, as GeoJSON (Natural Earth, public domain)."""
    return json.loads((FILES / "outlines.geojson").read_text("utf-8"))
