/** Draws with WebGL2: one instanced call for each track in each tile; text goes on a 2D canvas above. */

import { INKS, type InkTable, newCanvas, type Painter, sizeCanvas, type Strip } from "./painter.js";
import { type Rgb, SLOTS } from "./palette.js";
import { FULL, look, type Shapes } from "./shapes.js";

const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec2 edges;
layout(location = 1) in uint look;
uniform vec2 size;
uniform vec4 place;   // pixel of bucket 0, pixels per bucket, clip left, clip right
uniform vec4 rows;    // full rows, their height, thin rows, their height
uniform float top;
uniform int ink;
uniform vec3 solids[${INKS.length * SLOTS}];
uniform vec3 tints[${INKS.length * SLOTS}];
uniform vec4 only;    // a colour that replaces all others where its last part is not 0
flat out vec3 solid;
flat out vec3 tint;
flat out vec2 heights;
out float height;
void main() {
  float depth = float(look & 255u);
  int slot = ink * ${SLOTS} + int((look >> 8) & 255u);
  vec2 x = edges * place.y + place.x;
  bool hidden = x.y <= place.z || x.x >= place.w || depth >= rows.x + rows.z;
  float left = floor(max(x.x, place.z) + 0.5);
  float right = max(floor(min(x.y, place.w) + 0.5), left + 1.0);
  heights = vec2(float((look >> 16) & 255u), float(look >> 24)) / 255.0;
  if (heights.x == 1.0 && right - left > 3.0 && x.y <= place.w && ink != ${INKS.indexOf("counter")}) right -= 1.0;
  float full = min(depth, rows.x);
  float thin = max(depth - rows.x, 0.0);
  float rowTop = top + full * rows.y + thin * rows.w;
  float rowHeight = depth < rows.x ? rows.y - 1.0 : rows.w;
  if (heights.x > 0.0 && heights.x < 1.0) heights.x = max(heights.x, 1.0 / rowHeight);
  vec2 corner = vec2(float(gl_VertexID & 1), float(gl_VertexID >> 1));
  float part = max(heights.x, heights.y);
  height = corner.y * part;
  vec2 pixel = vec2(mix(left, right, corner.x), rowTop + rowHeight * (1.0 - height));
  gl_Position = hidden ? vec4(2.0, 2.0, 0.0, 1.0)
                       : vec4(pixel.x / size.x * 2.0 - 1.0, 1.0 - pixel.y / size.y * 2.0, 0.0, 1.0);
  solid = only.w > 0.0 ? only.rgb : solids[slot];
  tint = tints[slot];
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 solid;
flat in vec3 tint;
flat in vec2 heights;
in highp float height;
out vec4 colour;
void main() {
  colour = vec4(height <= heights.x ? solid : tint, 1.0);
}`;

/** One shape of one bucket. */
const BOX: Shapes = { count: 1, edges: Float32Array.of(0, 1), looks: Uint32Array.of(look(0, 0, FULL, FULL)) };

interface Held {
  readonly array: WebGLVertexArrayObject;
  readonly buffers: readonly WebGLBuffer[];
}

/** The browser has no WebGL2, or took it away. */
export class WebGlUnavailableError extends Error {
  override readonly name = "WebGlUnavailableError";
}

export class WebGlPainter implements Painter {
  readonly kind = "webgl2";
  readonly elements: readonly HTMLCanvasElement[];
  readonly pen: CanvasRenderingContext2D;
  private readonly gl: WebGL2RenderingContext;
  private readonly program: WebGLProgram;
  private readonly uniforms: Readonly<Record<string, WebGLUniformLocation | null>>;
  private readonly held = new Map<Shapes, Held>();
  private width = 1;
  private height = 1;
  private ratio = 1;
  private isDestroyed = false;
  private background: Rgb = [0, 0, 0];

  /**
   * @param onLost Called when the browser takes the context away.
   * @param needsGpu Whether a context that a program on the CPU draws will not do.
   */
  constructor(onLost: () => void, needsGpu: boolean) {
    const canvas = newCanvas("nt-canvas");
    const looks = { alpha: false, antialias: false, depth: false, stencil: false };
    const gl = canvas.getContext("webgl2", { ...looks, failIfMajorPerformanceCaveat: needsGpu });
    if (!gl) throw new WebGlUnavailableError("This browser gives no WebGL2.");
    if (needsGpu && isSoftware(gl)) {
      gl.getExtension("WEBGL_lose_context")?.loseContext();
      throw new WebGlUnavailableError("This browser draws WebGL2 by a program on the CPU.");
    }
    const text = newCanvas("nt-canvas");
    const pen = text.getContext("2d");
    if (!pen) throw new WebGlUnavailableError("This browser gives no 2D canvas.");
    this.gl = gl;
    this.pen = pen;
    this.elements = [canvas, text];
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      if (!this.isDestroyed) onLost();
    });
    this.program = link(gl);
    const names = ["size", "place", "rows", "top", "ink", "solids", "tints", "only"];
    this.uniforms = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(this.program, name)]));
    gl.useProgram(this.program);
    gl.enable(gl.SCISSOR_TEST);
  }

  resize(width: number, height: number, ratio: number): void {
    for (const element of this.elements) sizeCanvas(element, width, height, ratio);
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.gl.viewport(0, 0, this.gl.canvas.width, this.gl.canvas.height);
    this.gl.uniform2f(this.uniforms["size"]!, width, height);
  }

  setInks(inks: InkTable): void {
    this.background = inks.background;
    const flat = (table: InkTable["solid"]): Float32Array =>
      Float32Array.from(INKS.flatMap((ink) => table[ink].flatMap((colour) => colour.map((part) => part / 255))));
    this.gl.uniform3fv(this.uniforms["solids"]!, flat(inks.solid));
    this.gl.uniform3fv(this.uniforms["tints"]!, flat(inks.tint));
  }

  begin(): void {
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    this.pen.clearRect(0, 0, this.pen.canvas.width, this.pen.canvas.height);
    this.pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const [red, green, blue] = this.background;
    this.region(0, this.height);
    this.gl.clearColor(red / 255, green / 255, blue / 255, 1);
    this.gl.clear(this.gl.COLOR_BUFFER_BIT);
  }

  region(top: number, bottom: number): void {
    this.scissor(0, top, this.width, bottom - top);
  }

  /** Draws a shape: clearing a part would make some machines begin the frame anew. */
  fill(left: number, top: number, width: number, height: number, colour: Rgb): void {
    const { gl, uniforms } = this;
    gl.uniform4f(uniforms["only"]!, colour[0] / 255, colour[1] / 255, colour[2] / 255, 1);
    this.strip({
      shapes: BOX,
      originX: left,
      bucketPixels: width,
      clipLeft: left,
      clipRight: left + width,
      top,
      fullRows: 0,
      rowHeight: 0,
      thinRows: 1,
      thinHeight: height,
      ink: "plain",
    });
    gl.uniform4f(uniforms["only"]!, 0, 0, 0, 0);
  }

  strip(strip: Strip): void {
    if (strip.shapes.count === 0) return;
    const { gl, uniforms } = this;
    gl.bindVertexArray(this.uploaded(strip.shapes).array);
    gl.uniform4f(uniforms["place"]!, strip.originX, strip.bucketPixels, strip.clipLeft, strip.clipRight);
    gl.uniform4f(uniforms["rows"]!, strip.fullRows, strip.rowHeight, strip.thinRows, strip.thinHeight);
    gl.uniform1f(uniforms["top"]!, strip.top);
    gl.uniform1i(uniforms["ink"]!, INKS.indexOf(strip.ink));
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, strip.shapes.count);
  }

  end(): void {
    this.gl.flush();
  }

  release(shapes: Shapes): void {
    const held = this.held.get(shapes);
    if (!held) return;
    this.held.delete(shapes);
    this.gl.deleteVertexArray(held.array);
    for (const buffer of held.buffers) this.gl.deleteBuffer(buffer);
  }

  destroy(): void {
    this.isDestroyed = true;
    for (const shapes of [...this.held.keys()]) this.release(shapes);
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
    for (const element of this.elements) element.remove();
  }

  private scissor(left: number, top: number, width: number, height: number): void {
    const { ratio } = this;
    const bottom = this.gl.canvas.height - Math.round((top + height) * ratio);
    const pixels = [Math.round(left * ratio), bottom, Math.round(width * ratio), Math.round(height * ratio)] as const;
    this.gl.scissor(pixels[0], pixels[1], Math.max(pixels[2], 1), Math.max(pixels[3], 1));
  }

  private uploaded(shapes: Shapes): Held {
    const known = this.held.get(shapes);
    if (known) return known;
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const edges = this.buffer(shapes.edges);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.vertexAttribDivisor(0, 1);
    const looks = this.buffer(shapes.looks);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 1, gl.UNSIGNED_INT, 0, 0);
    gl.vertexAttribDivisor(1, 1);
    const held = { array, buffers: [edges, looks] };
    this.held.set(shapes, held);
    return held;
  }

  private buffer(content: Float32Array | Uint32Array): WebGLBuffer {
    const buffer = this.gl.createBuffer();
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, content as Float32Array<ArrayBuffer>, this.gl.STATIC_DRAW);
    return buffer;
  }
}

function link(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
    const shader = gl.createShader(kind);
    if (!shader) throw new WebGlUnavailableError("This browser's WebGL2 makes no shaders.");
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
    throw new WebGlUnavailableError(`WebGL2 refused the shaders: ${gl.getProgramInfoLog(program) ?? ""}`);
  }
  return program;
}

function isSoftware(gl: WebGL2RenderingContext): boolean {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const renderer = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
}
