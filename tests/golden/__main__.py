"""A command that rewrites the golden pages."""

from tests.golden import FOLDER, pages

if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_bytes(text)
