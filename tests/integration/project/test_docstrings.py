"""What a public function raises itself stands in its docstring."""

import ast

from tests.integration.project.checkout import PACKAGE_FOLDERS, ROOT, tracked_files


def raising(function):
    """Whether a function's own lines raise something new; what functions inside it do is theirs."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return False


def public_functions(body):
    """Functions and methods whose names, and whose classes' names, do not begin with an underscore."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def without_raises(text):
    """Public functions of a module that raise, and do not say what."""
    return [
        function.name
        for function in public_functions(ast.parse(text).body)
        if raising(function) and "Raises:" not in (ast.get_docstring(function) or "")
    ]


def test_public_functions_say_what_they_raise():
    modules = [
        path
        for path in tracked_files()
        if path.suffix == ".py"
        and any(path.is_relative_to(ROOT / folder) for folder in PACKAGE_FOLDERS)
        # A command's docstring is its help: what goes wrong is told when it does.
        and path.parent.name != "commands"
        and not path.name.endswith("cli.py")
    ]
    assert modules
    found = {str(path.relative_to(ROOT)): without_raises(path.read_text()) for path in modules}
    assert not {name: functions for name, functions in found.items() if functions}


def test_a_function_that_does_not_say_so_is_found():
    text = """
def one():
    'Do it.'
    raise ValueError("x")

def two():
    'Do it. Raises: ValueError: Always.'
    raise ValueError("x")

def three():
    'Do it.'
    def inner():
        raise ValueError("x")
    return inner
"""
    assert without_raises(text) == ["one"]
