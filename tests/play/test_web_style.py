"""The style sheet of the page."""

import re

from azjax.play.page_files import page_files, read_page

STYLE = "style.css"


def test_the_style_sheet_names_only_classes_and_ids_of_the_page():
    sources = []
    for name, content in read_page().items():
        if name.endswith((".html", ".js")) and not name.startswith("vendor"):
            sources.append(content.decode())
    literals = re.findall(r'(["`])(.*?)\1', "\n".join(sources))
    known = {word for _, text in literals for word in re.findall(r"[\w-]+", text)}
    style = re.sub(r"/\*.*?\*/", "", (page_files() / STYLE).read_text(), flags=re.S)
    selectors = " ".join(re.findall(r"[^{};]+(?={)", style))
    named = set(re.findall(r"[.#]([a-z][\w-]*)", selectors))
    assert {"card", "board", "labels"} <= named
    assert named - known == set()
