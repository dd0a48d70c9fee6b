"""What is published names no folder, user or host of the machine that it was made on."""

import platform
import re
import subprocess

from repository import REPOSITORY

PUBLISHED = ("outputs/reference", "docs", "conf", "src", "README.md", "CHANGELOG.md")
TEXTS = {".json", ".csv", ".txt", ".md", ".yaml", ".ipynb", ".py", ".cff", ".jinja"}
FOLDER = re.compile(r"(?<![\w.])/(home|root|Users|tmp|work)/\w")


def test_nothing_published_names_a_machine():
    listed = subprocess.run(
        ["git", "ls-files", *PUBLISHED], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    paths = [REPOSITORY / line for line in listed.stdout.splitlines()]
    texts = {path: path.read_text() for path in paths if path.suffix in TEXTS}
    assert len(texts) > 500
    found = [f"{path}: {text[m.start() :][:60]}" for path, text in texts.items()
             for m in FOLDER.finditer(text)]  # fmt: skip
    host = platform.node()
    found += [str(path) for path, text in texts.items() if len(host) > 5 and host in text]
    assert not found


def test_a_folder_would_be_found():
    assert FOLDER.search('"outputs=/tmp/x"') and FOLDER.search("/home/a")
    assert not FOLDER.search("https://example.org/home/a") and not FOLDER.search("a/tmp/b")
