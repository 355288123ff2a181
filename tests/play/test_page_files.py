import re
import subprocess

import pytest

from azjax.play.page_files import joined, page_files, read_page


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return folder


@pytest.mark.usefixtures("node")
def test_equal_names_in_two_modules_do_not_collide(tmp_path):
    write(
        tmp_path,
        numbers="const SIZE = 3;\nexport const big = SIZE * 100;\n",
        sums=(
            'import { big } from "./numbers.js";\nconst SIZE = 4;\n'
            "export function sum() {\n  return big + SIZE;\n}\n"
            "export class Sum {}\n"
        ),
        main=(
            'import { big } from "./numbers.js";\n'
            'import {\n  sum,\n  Sum,\n} from "./sums.js";\n'
            "console.log(big, sum(), new Sum().constructor.name);\n"
            "export default { sum };\n"
        ),
    )
    (tmp_path / "one.mjs").write_text(joined(tmp_path, "main.js"))
    ran = subprocess.run(
        ["node", tmp_path / "one.mjs"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "300 304 Sum\n"


@pytest.mark.parametrize(
    "text",
    [
        'import * as all from "./other.js";\n',
        'import { one as two } from "https://example.org/other.js";\n',
        'export { one } from "./other.js";\n',
        "export let one = 1;\n",
    ],
)
def test_unsupported_imports_and_exports_are_rejected(tmp_path, text):
    write(tmp_path, main='import { one } from "./part.js";\n', part=text, other="")
    with pytest.raises(
        ValueError, match=re.escape(f"part.js cannot be joined: {text}"[:40])
    ):
        joined(tmp_path, "main.js")


def test_import_cycles_are_rejected(tmp_path):
    write(
        tmp_path,
        one='import { two } from "./two.js";\n',
        two='import { one } from "./one.js";\n',
    )
    with pytest.raises(ValueError, match=r"cycle: one\.js two\.js one\.js"):
        joined(tmp_path, "one.js")


def test_the_notebooks_module_is_self_contained():
    text = joined(page_files(), "widget.js")
    assert not re.search(r"^import\b|^export (?!default)", text, re.MULTILINE)
    assert text.count("class Page ") == text.count("class MessageEngine ") == 1
    assert "class ServerEngine" not in text


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
