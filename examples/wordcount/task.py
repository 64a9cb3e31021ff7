"""Words of identifiers and docstrings, counted in one module or package of Python's own library."""

import ast
import collections
import importlib.util
import pathlib
import re

WORD = re.compile("[A-Z]?[a-z]{2,}")
"""`readFileAs` has three words, as has `read_file_as`."""
NAMED = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr", ast.alias: "name"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count(item):
    """How often each word is in the module of that name: this is what a peer is called with."""
    counts = collections.Counter()
    for file in files_of(item):
        for node in ast.walk(ast.parse(file.read_bytes())):
            counts.update(word.lower() for text in texts_of(node) for word in WORD.findall(text))
    return dict(counts)


def merge(one, other):
    """The counts of two as one: peers call this with results until one is left."""
    return dict(collections.Counter(one) + collections.Counter(other))


def files_of(module):
    spec = importlib.util.find_spec(module)
    if spec.submodule_search_locations:
        return sorted(file for folder in spec.submodule_search_locations for file in pathlib.Path(folder).rglob("*.py"))
    return [pathlib.Path(spec.origin)] if spec.has_location else []


def texts_of(node):
    if isinstance(node, DOCUMENTED):
        yield getattr(node, "name", "")
        yield ast.get_docstring(node) or ""
    elif type(node) in NAMED:
        yield getattr(node, NAMED[type(node)])
