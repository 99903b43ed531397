import { describe, expect, it } from "vitest";
import { browserAddress, EndpointError, parseEndpoint, parseReadyLine } from "../src/server/endpoint";

describe("parseEndpoint", () => {
  it("takes the address as it is printed", () =>
    expect(parseEndpoint(" http://127.0.0.1:3001/overview?profile=ab&token=secret ")).toEqual({
      baseUrl: "http://127.0.0.1:3001",
      token: "secret",
    }));

  it.each(["", "nonsense", "ftp://host/?token=x", "http://127.0.0.1:3001/", "http://127.0.0.1:3001/?token="])(
    "refuses %j in one sentence",
    (address) => expect(() => parseEndpoint(address)).toThrow(EndpointError),
  );
});

describe("parseReadyLine", () => {
  it("reads the server's line", () =>
    expect(parseReadyLine('{"url": "http://127.0.0.1:5/", "token": "t"}')).toEqual({
      baseUrl: "http://127.0.0.1:5",
      token: "t",
    }));

  it("reads what stands for the token in a browser's address", () =>
    expect(parseReadyLine('{"url": "http://127.0.0.1:5/", "token": "t", "open": "o"}')?.open).toBe("o"));

  it.each(["", "{", '{"url": 7}', "Traceback (most recent call last):", '{"url": "no", "token": "t"}'])(
    "passes over %j",
    (line) => expect(parseReadyLine(line)).toBeUndefined(),
  );
});

describe("browserAddress", () => {
  const endpoint = { baseUrl: "http://127.0.0.1:5", token: "t" };

  it("holds no token where the server told what stands for it", () =>
    expect(browserAddress({ ...endpoint, open: "o" }, "a b")).toBe("http://127.0.0.1:5/overview?profile=a+b&open=o"));

  it("holds the token of a server that somebody else started", () =>
    expect(browserAddress(endpoint, "ab")).toBe("http://127.0.0.1:5/overview?profile=ab&token=t"));
});
