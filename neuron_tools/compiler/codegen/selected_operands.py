"""Operands of selected instructions: keys of what the group makes, or of what comes from outside."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuron_tools.compiler.codegen.micro import External, Key, Selection
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.passes.groups import Domain, Group, Shape
from neuron_tools.compiler.views import View, Views, merged_blocks


@dataclass(eq=False)
class SelectedOperands:
    """Finds the key and the form of an operand; notes in the selection what comes from outside."""

    _group: Group
    _module: Module
    _views: Views
    _domain: Domain
    _result: Selection = field(default_factory=Selection, init=False)
    _alias: dict[int, Key] = field(default_factory=dict, init=False)
    _temporaries: int = field(default=0, init=False)

    def _operand(self, value: int) -> tuple[Key | None, str]:
        """(key, form) of an operand; (None, "constant") for a number known at compile time."""
        view = self._views.of(value)
        if view.root in self._group.shapes:
            key = self._alias.get(view.root, view.root)
            if isinstance(key, int) and key in self._group.shapes:
                return key, "row" if self._group.shapes[key] is Shape.ROW else "full"
            external = self._result.externals.get(key)
            return key, external.form if external else "full"
        if view.root < 0 and view.generator is not None and view.generator.opcode == "constant":
            return None, "constant"
        return self._external(value, view)

    def _external(self, value: int, view: View) -> tuple[Key, str]:
        key: Key = view.root if view.is_plain else ("view", value)
        if key not in self._result.externals:
            form = self._form(value, view)
            self._result.externals[key] = External(key, value, view, form)
            self._result.value_of[key] = value
        return key, self._result.externals[key].form

    def _form(self, value: int, view: View) -> str:
        domain = self._domain
        count = self._module.values[value].type.element_count
        prefix = "iota_" if view.root < 0 else ""
        if view.is_scalar:
            return "scalar" if view.root >= 0 else "iota_row"
        if count == domain.rows and count != domain.outer * domain.rows * domain.columns:
            return prefix + "row"
        outer, rows, columns = domain.outer, domain.rows, domain.columns
        if view.blocks == merged_blocks([(outer, False), (rows, True), (columns, False)]):
            return prefix + "row"
        if view.blocks == merged_blocks([(outer * rows, False), (columns, True)]) and outer == 1:
            return prefix + "column"
        if all(block.real for block in view.blocks):
            return prefix + "full"
        return prefix + ("full" if prefix else "expand")

    def _lazy_operand(self, value: int) -> tuple[Key | None, str]:
        view = self._views.of(value)
        if view.root < 0 and view.generator is not None and view.generator.opcode == "constant":
            return None, "constant"
        key: Key = ("view", value)
        if key not in self._result.externals:
            self._result.externals[key] = External(key, value, view, self._form(value, view))
            self._result.value_of[key] = value
        return key, self._result.externals[key].form

    def _temporary(self) -> Key:
        self._temporaries += 1
        return ("temporary", self._temporaries)
