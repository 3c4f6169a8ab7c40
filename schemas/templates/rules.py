"""What a template may say: a closed list of constructs, checked before anything is compiled.

Whoever writes templates need not be who runs the installation. What could run long or reach out is no construct here:
no calls, macros, includes or assignments; a loop inside a loop goes over a part of the outer one's item, so all
iterations together are bounded by what the payload holds.
"""

from __future__ import annotations

from collections.abc import Collection

from jinja2 import TemplateSyntaxError, nodes

from schemas.names import did_you_mean

_ALLOWED: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Const,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Filter,
    nodes.Test,
    nodes.Keyword,
    nodes.If,
    nodes.For,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Neg,
    nodes.List,
    nodes.Tuple,
)

_WORDS = {
    "Assign": "set",
    "AssignBlock": "set",
    "Call": "a call",
    "CallBlock": "a call",
    "Concat": "~",
    "FilterBlock": "a filter block",
    "FromImport": "import",
    "Pow": "**",
    "Scope": "autoescape",  # what it is parsed to
}
"""How people write the constructs that are most likely tried."""


def check(template: nodes.Template, names: Collection[str] | None) -> None:
    """Raises `TemplateSyntaxError` at the first construct that is not allowed, or name that will not be there.

    `names` None: any name may be.
    """
    _visit(template, names, frozenset(), frozenset())


def _visit(
    node: nodes.Node, names: Collection[str] | None, local: frozenset[str], items: frozenset[str]
) -> None:
    if not isinstance(node, _ALLOWED):
        line = node.lineno or next((child.lineno for child in node.iter_child_nodes()), 0)
        raise TemplateSyntaxError(f"{_called(node)} is nothing a template may use", line)
    if isinstance(node, nodes.Name) and names is not None and node.name not in {*names, *local}:
        question = did_you_mean(node.name, {*names, *local})
        raise TemplateSyntaxError(f"there is no {node.name}{question}", node.lineno)
    if isinstance(node, nodes.For):
        _visit_loop(node, names, local, items)
        return
    for child in node.iter_child_nodes():
        _visit(child, names, local, items)


def _visit_loop(
    loop: nodes.For, names: Collection[str] | None, local: frozenset[str], items: frozenset[str]
) -> None:
    if loop.recursive:
        raise TemplateSyntaxError("a recursive loop is nothing a template may use", loop.lineno)
    root = _root(loop.iter)
    if root is None:
        raise TemplateSyntaxError("a loop goes over a list that the event has", loop.lineno)
    if items and root not in items:
        raise TemplateSyntaxError("a loop in a loop goes over a part of the outer one's item", loop.lineno)
    targets = frozenset(
        found.name
        for found in (loop.target, *loop.target.find_all(nodes.Name))
        if isinstance(found, nodes.Name)
    )
    _visit(loop.iter, names, local, items)
    inside = local | targets | {"loop"}
    for child in (*loop.body, *([loop.test] if loop.test else ())):
        _visit(child, names, inside, targets)
    for child in loop.else_:
        _visit(child, names, local, items)


def _root(node: nodes.Node) -> str | None:
    """The name at the beginning of `a.b[0].c`."""
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        node = node.node
    return node.name if isinstance(node, nodes.Name) else None


def _called(node: nodes.Node) -> str:
    name = type(node).__name__
    return _WORDS.get(name, name.lower())
