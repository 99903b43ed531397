"""FrameworkShare: the parts that framework operations have in what they were fused into."""

from __future__ import annotations

import numpy as np

from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.capture.tables.ids import IdLayout
from neuron_tools.capture.template import Template


def share_table(template: Template, layout: IdLayout) -> TableTemplate:
    """Relative FrameworkShare rows of one executable: of HLO operations with several framework operations."""
    parts = [
        (row, owner, share)
        for row in template.hlo_rows.tolist()
        for operation in [template.program.hlo[row]]
        if len(operation.framework) > 1
        for owner, share in zip(operation.framework, operation.shares)
    ]
    hlo, framework = (np.array([part[column] for part in parts], np.int64) for column in (0, 1))
    return TableTemplate(
        rows=len(parts),
        numbers={"share": np.array([part[2] for part in parts], np.float64)},
        references={"raw_hlo_id": layout.hlo[hlo], "raw_framework_id": layout.framework[framework]},
    )
