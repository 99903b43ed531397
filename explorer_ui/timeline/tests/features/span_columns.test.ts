import { describe, expect, it } from "vitest";

import { columnText, spanColumns } from "../../src/features/span_columns.js";

describe("the columns of a span", () => {
  it("tells an operation once where a link names it already", () => {
    const columns = { framework_name: "aten::mm", opcode: "MATMUL" };

    expect(spanColumns(columns, ["HLO", "Operation"])).toEqual({
      told: [["Instruction", "MATMUL"]],
      folded: [["framework_name", "aten::mm"]],
    });
    expect(spanColumns(columns, []).told).toEqual([
      ["Operation", "aten::mm"],
      ["Instruction", "MATMUL"],
    ]);
  });

  it("tells two columns of one word once, and keeps the other among the folded", () => {
    expect(spanColumns({ transfer_size: 4096, dma_size: 512 }, [])).toEqual({
      told: [["Bytes", "4.096 kB"]],
      folded: [["dma_size", "512 B"]],
    });
  });

  it("leaves out what the head says, and what says nothing", () => {
    const columns = { start_ts: 5, duration_ns: 7, operands: "", elements: 0, is_backward: false, shape: null };

    expect(spanColumns(columns, [])).toEqual({ told: [], folded: [] });
  });

  it("writes each number in its unit", () => {
    expect(columnText("evt_wait_time_ns", 1234)).toBe("1.234 µs");
    expect(columnText("hbm_read_bytes", 1_048_576)).toBe("1.049 MB");
    expect(columnText("bytes", 512)).toBe("512 B");
    expect(columnText("elements", 65536)).toBe("65,536");
    expect(columnText("raw_framework_id", 65536)).toBe("65536");
    expect(columnText("opcode", "MATMUL")).toBe("MATMUL");
  });
});
