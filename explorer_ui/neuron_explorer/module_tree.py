"""The hierarchy as rows: modules, the operations inside them, their time and their work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from neuron_explorer import results
from neuron_explorer.analyses import analysis
from neuron_explorer.cost import Cost
from neuron_profile.analysis.time.charges import Charge
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

OPERATION_WORK = "operation-work"
ROOT = "(whole program)"
_WORK = """
SELECT coalesce(layer, '') AS module, coalesce(framework_name, '') AS operation,
    CAST(sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0)) AS BIGINT) AS hbm_bytes,
    CAST(sum(coalesce(tensor_engine_instruction_count, 0) + coalesce(vector_engine_instruction_count, 0)
        + coalesce(scalar_engine_instruction_count, 0) + coalesce(gpsimd_engine_instruction_count, 0)
        + coalesce(sync_engine_instruction_count, 0)) AS BIGINT) AS instructions
FROM FrameworkInstruction GROUP BY ALL
"""
WorkOf = Mapping[tuple[str, str], tuple[int, int]]


@analysis(OPERATION_WORK, "Summing up bytes and instructions by operation")
def operation_work(profile: Profile) -> dict[tuple[str, str], tuple[int, int]]:
    """HBM bytes and instructions by module and operation."""
    return {
        (row["module"], row["operation"]): (row["hbm_bytes"], row["instructions"])
        for row in results.rows(profile, _WORK)
    }


@dataclass
class TreeNode(Cost):
    """A module, or an operation inside one, with everything below it.

    Attributes:
        path: "/model/layers/0"; of an operation with its name behind a space.
        own_ns: Device time of operations in the module itself.
    """

    name: str
    path: str
    kind: str = "module"
    own_ns: float = 0.0
    count: int = 0
    children: dict[str, TreeNode] = field(default_factory=dict)

    def add(self, charge: Charge, hbm_bytes: int, instructions: int) -> None:
        """Add what an operation cost."""
        self.device_ns += charge.device_ns
        self.backward_ns += charge.device_ns if charge.origin.backward else 0.0
        self.count += charge.count
        self.hbm_bytes += hbm_bytes
        self.instructions += instructions

    def ordered(self) -> list[TreeNode]:
        """What stands directly below, the costliest first."""
        return sorted(self.children.values(), key=lambda node: (-node.device_ns, node.path))


def make_tree(charges: Iterable[Charge], work: WorkOf) -> TreeNode:
    """Modules and operations as one tree."""
    root = TreeNode(ROOT, "/")
    left = dict(work)
    for charge in charges:
        module, operation = charge.origin.module, charge.origin.operation
        # Bytes and instructions are known by module and operation: the first charge of a pair takes them.
        hbm_bytes, instructions = left.pop((module, operation), (0, 0))
        node = root
        node.add(charge, hbm_bytes, instructions)
        for part in (part for part in module.split("/") if part):
            path = f"{node.path.rstrip('/')}/{part}"
            node = node.children.setdefault(part, TreeNode(part, path))
            node.add(charge, hbm_bytes, instructions)
        node.own_ns += charge.device_ns
        name = operation or "(unnamed)"
        leaf = node.children.setdefault(f" {name}", TreeNode(name, f"{node.path} {name}", "operation"))
        leaf.add(charge, hbm_bytes, instructions)
    return root


@frozen
class TreeRow:
    """A row of the tree table; `parent` is the place of its parent among the rows, -1 of the root."""

    depth: int
    parent: int
    node: TreeNode


def tree_rows(root: TreeNode, most: int) -> list[TreeRow]:
    """The costliest nodes with all their parents, in the order of the tree."""
    chosen = _costliest(root, most)
    rows: list[TreeRow] = []

    def add(node: TreeNode, depth: int, parent: int) -> None:
        place = len(rows)
        rows.append(TreeRow(depth, parent, node))
        for child in node.ordered():
            if id(child) in chosen:
                add(child, depth + 1, place)

    add(root, 0, -1)
    return rows


def count_nodes(root: TreeNode) -> int:
    """Nodes of a tree."""
    return 1 + sum(count_nodes(child) for child in root.children.values())


def _costliest(root: TreeNode, most: int) -> set[int]:
    """Ids of the nodes to show; a node is never costlier than its parent, so parents are among them."""
    found: defaultdict[int, list[TreeNode]] = defaultdict(list)

    def walk(node: TreeNode, depth: int) -> None:
        found[depth].append(node)
        for child in node.children.values():
            walk(child, depth + 1)

    walk(root, 0)
    nodes = [(node.device_ns, -depth, node.path, node) for depth, level in found.items() for node in level]
    nodes.sort(key=lambda entry: (-entry[0], -entry[1], entry[2]))
    return {id(node) for *_, node in nodes[:most]}
