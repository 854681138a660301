"""The files that all pages of a site share, and source text as HTML."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from markupsafe import Markup, escape
from pygments.lexer import Lexer, RegexLexer, words
from pygments.lexers.c_cpp import CLexer
from pygments.lexers.data import JsonLexer, YamlLexer
from pygments.lexers.scripting import LuaLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

_OWN = ("site.css", "site.js")
PLOTLY = "plotly.min.js"


def assets() -> dict[str, bytes]:
    """Content by file name. Plotly's script (MIT licence) is the one that its Python package ships."""
    folder = files("p4perf.evaluation.report") / "site"
    found = {name: (folder / name).read_bytes() for name in _OWN}
    return found | {PLOTLY: (files("plotly") / "package_data" / PLOTLY).read_bytes()}


_KEYWORDS = (
    *("abstract", "action", "actions", "apply", "const", "control", "default", "default_action", "else", "entries"),
    *("enum", "error", "exit", "extern", "header", "header_union", "if", "in", "inout", "key", "match_kind", "out"),
    *("package", "parser", "pragma", "return", "select", "size", "state", "struct", "switch", "table", "transition"),
    *("tuple", "typedef", "type", "value_set", "exact", "lpm", "ternary", "range", "accept", "reject"),
)
_TYPES = ("bit", "bool", "int", "string", "varbit", "void", "packet_in", "packet_out")
_SWX = (
    *("instanceof", "args", "metadata", "pipeline", "regarray", "metarray", "initval", "rx", "tx", "extract", "emit"),
    *("mov", "add", "sub", "and", "or", "xor", "shl", "shr", "jmp", "jmpv", "jmpnv", "jmpeq", "jmpneq", "jmplt"),
    *("jmpgt", "jmph", "jmpnh", "jmpa", "jmpna", "validate", "invalidate", "ckadd", "cksub", "regrd", "regwr"),
    *("regadd", "regprefetch", "meter", "metprefetch", "learn", "forget", "recirculate", "mirror", "hash", "rss"),
    "drop",
)


class P4Lexer(RegexLexer):  # type: ignore[misc]
    """P4-16 (words of the language specification, version 1.2.4), and the text of DPDK's SWX pipelines."""

    name = "P4"
    aliases: ClassVar[list[str]] = ["p4"]
    filenames: ClassVar[list[str]] = ["*.p4", "*.spec"]
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*(?:[^*]|\*(?!/))*\*/", Comment.Multiline),
            (r"[#;][^\n]*(?=\n)(?<=[^;])", Comment.Preproc),
            (r"@\w+", Name.Decorator),
            (r'"[^"\n]*"', String),
            (words(_KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (words(_TYPES, prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (words(_SWX, prefix=r"\b", suffix=r"\b"), Name.Builtin),
            (r"\b(?:true|false)\b", Keyword.Constant),
            (r"(?:\d+[ws])?0[xX][0-9a-fA-F_]+|(?:\d+[ws])?0[bB][01_]+|(?:\d+[ws])?\d[\d_]*", Number),
            (r"[A-Za-z_]\w*", Name),
            (r"[-+*/%&|^~!<>=?]+", Operator),
            (r"[{}()\[\];:,.]", Punctuation),
        ]
    }


_LEXERS: dict[str, type[Lexer]] = {
    "p4": P4Lexer, "spec": P4Lexer, "c": CLexer, "h": CLexer, "lua": LuaLexer, "yaml": YamlLexer, "json": JsonLexer,
}  # fmt: skip


@cache
def _lexer(kind: str) -> Lexer:
    return _LEXERS.get(kind, TextLexer)(stripnl=False)


_CLASSES: tuple[tuple[Any, str], ...] = (
    (Comment.Preproc, "d"),
    (Comment.PreprocFile, "s"),
    (Comment, "c"),
    (Keyword.Type, "t"),
    (Keyword, "k"),
    (Number, "m"),
    (String, "s"),
    (Name.Builtin, "b"),
    (Name.Decorator, "d"),
    (Name.Tag, "t"),
    (Name.Function, "b"),
)
"""The classes that the style sheet knows; the other words stand as they are, which halves the pages."""


@cache
def _class(kind: Any) -> str:
    return next((name for parent, name in _CLASSES if kind in parent), "")


def highlighted(text: str, file_name: str) -> Markup:
    """A text as escaped HTML, its words in elements ``i`` with classes. The suffix of the name decides the language."""
    lexer = _lexer(file_name.rsplit(".", 1)[-1].lower())
    pieces = []
    for kind, value in lexer.get_tokens(text):
        name, shown = _class(kind), escape(value)
        pieces.append(f"<i class={name}>{shown}</i>" if name and not value.isspace() else str(shown))
    return Markup("".join(pieces))  # noqa: S704 - every value is escaped
