/** Search of the triangles near a point: a tree of boxes over triangles that are given by their corners. */

/** Triangles of a leaf. */
const LEAF_COUNT = 8;

export class SurfaceIndex {
  /** Lower and upper corner of each node. */
  private readonly boxes: Float32Array;
  /** First triangle and number of triangles of a leaf; second child and 0 of another node. Its first child follows. */
  private readonly nodes: Int32Array;
  private readonly order: Uint32Array;
  private nodeCount = 0;

  /** @param corners Nine numbers for each triangle. */
  constructor(private readonly corners: Float32Array) {
    const count = corners.length / 9;
    this.order = Uint32Array.from({ length: count }, (_, index) => index);
    const size = Math.max(1, 2 * count);
    this.boxes = new Float32Array(6 * size);
    this.nodes = new Int32Array(2 * size);
    if (count > 0) this.build(0, count);
  }

  private build(start: number, end: number): number {
    const node = this.nodeCount++;
    const box = this.boxes.subarray(6 * node, 6 * node + 6);
    box.fill(Infinity, 0, 3).fill(-Infinity, 3, 6);
    for (let position = start; position < end; position++) {
      const base = 9 * (this.order[position] ?? 0);
      for (let offset = 0; offset < 9; offset++) {
        const value = this.corners[base + offset] ?? 0;
        const axis = offset % 3;
        box[axis] = Math.min(box[axis] ?? 0, value);
        box[axis + 3] = Math.max(box[axis + 3] ?? 0, value);
      }
    }
    if (end - start <= LEAF_COUNT) {
      this.nodes.set([start, end - start], 2 * node);
      return node;
    }
    const sides = [0, 1, 2].map((axis) => (box[axis + 3] ?? 0) - (box[axis] ?? 0));
    const axis = sides.indexOf(Math.max(...sides));
    const center = (triangle: number): number =>
      [0, 3, 6].reduce((sum, corner) => sum + (this.corners[9 * triangle + corner + axis] ?? 0), 0);
    this.order.subarray(start, end).sort((a, b) => center(a) - center(b));
    const middle = (start + end) >> 1;
    this.build(start, middle);
    this.nodes.set([this.build(middle, end), 0], 2 * node);
    return node;
  }

  /** Return whether a triangle is at most this far from a point. */
  isNear(x: number, y: number, z: number, distance: number): boolean {
    const { boxes, nodes } = this;
    if (this.nodeCount === 0) return false;
    const stack = [0];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      const box = 6 * node;
      const dx = Math.max((boxes[box] ?? 0) - x, x - (boxes[box + 3] ?? 0), 0);
      const dy = Math.max((boxes[box + 1] ?? 0) - y, y - (boxes[box + 4] ?? 0), 0);
      const dz = Math.max((boxes[box + 2] ?? 0) - z, z - (boxes[box + 5] ?? 0), 0);
      if (dx * dx + dy * dy + dz * dz > distance * distance) continue;
      const [first = 0, count = 0] = nodes.subarray(2 * node, 2 * node + 2);
      if (count === 0) stack.push(node + 1, first);
      for (let position = first; position < first + count; position++) {
        if (this.distanceTo(this.order[position] ?? 0, x, y, z) <= distance) return true;
      }
    }
    return false;
  }

  /** Return the distance of a point from a triangle (Ericson, "Real-Time Collision Detection", 2005, §5.1.5). */
  private distanceTo(triangle: number, x: number, y: number, z: number): number {
    const corner = (index: number): Vector => {
      const base = 9 * triangle + 3 * index;
      return [this.corners[base] ?? 0, this.corners[base + 1] ?? 0, this.corners[base + 2] ?? 0];
    };
    const [p, a, b, c]: [Vector, Vector, Vector, Vector] = [[x, y, z], corner(0), corner(1), corner(2)];
    const [ab, ac, ap] = [subtract(b, a), subtract(c, a), subtract(p, a)];
    const [d1, d2] = [dot(ab, ap), dot(ac, ap)];
    if (d1 <= 0 && d2 <= 0) return length(ap);
    const bp = subtract(p, b);
    const [d3, d4] = [dot(ab, bp), dot(ac, bp)];
    if (d3 >= 0 && d4 <= d3) return length(bp);
    const vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0) return length(subtract(ap, scale(ab, d1 / (d1 - d3))));
    const cp = subtract(p, c);
    const [d5, d6] = [dot(ab, cp), dot(ac, cp)];
    if (d6 >= 0 && d5 <= d6) return length(cp);
    const vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0) return length(subtract(ap, scale(ac, d2 / (d2 - d6))));
    const va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
      return length(subtract(bp, scale(subtract(c, b), (d4 - d3) / (d4 - d3 + d5 - d6))));
    }
    const total = va + vb + vc;
    return length(subtract(subtract(ap, scale(ab, vb / total)), scale(ac, vc / total)));
  }
}

type Vector = [number, number, number];

const subtract = (a: Vector, b: Vector): Vector => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const scale = (a: Vector, factor: number): Vector => [a[0] * factor, a[1] * factor, a[2] * factor];
const dot = (a: Vector, b: Vector): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const length = (a: Vector): number => Math.hypot(a[0], a[1], a[2]);
