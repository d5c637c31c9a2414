/** Beds below the objects of a conversion, with their names at the front edge. */

import {
  Box3,
  BufferAttribute,
  BufferGeometry,
  CanvasTexture,
  DoubleSide,
  Group,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Mesh,
  MeshBasicMaterial,
  PlaneGeometry,
  Vector3,
  type Material,
} from "three";

import type { Bed } from "../beds";

/** Millimeters between the lines of a bed. */
const LINE_MM = 50;
/** Height of the name per depth of the bed, and its distance from the front edge per height; the next bed is 0.2 away. */
const NAME_RATIO = 0.13;
const NAME_GAP_RATIO = 0.15;
const NAME_FONT_PIXELS = 64;
const NAME_PIXELS = 84;
/** How far the surface of a bed lies below the objects, per depth; two surfaces at one height would flicker. */
const GAP_RATIO = 5e-4;

export class Beds {
  readonly root = new Group();

  constructor() {
    this.root.matrixAutoUpdate = false;
  }

  private readonly boxes = new Map<number, Box3>();

  /** Place beds below the objects of an output. */
  place(objects: Box3 | null, beds: Bed[]): void {
    this.boxes.clear();
    if (!objects || objects.isEmpty()) return;
    const center = objects.getCenter(new Vector3());
    for (const { number, size, middle } of beds) {
      const at = new Vector3(center.x + middle[0], center.y + middle[1], objects.min.z);
      this.boxes.set(number, new Box3().setFromCenterAndSize(at, new Vector3(...size, 0)));
    }
  }

  /** Follow the objects, which stand where the model was as long as both are compared. */
  align(motion: Matrix4 | null): void {
    this.root.matrix.identity();
    if (motion) this.root.matrix.copy(motion).invert();
    this.root.matrixWorldNeedsUpdate = true;
  }

  /** Return the smallest box around another one and all beds. */
  around(box: Box3): Box3 {
    return [...this.boxes.values()].reduce((all, bed) => all.union(this.toView(bed)), box.clone());
  }

  get count(): number {
    return this.boxes.size;
  }

  /** Return the corners of all beds as they stand in the view. */
  listCorners(): number[] {
    return [...this.boxes.values()].flatMap((box) => {
      const { min, max } = this.toView(box);
      return [min.x, min.y, min.z, max.x, min.y, min.z, min.x, max.y, min.z, max.x, max.y, max.z];
    });
  }

  find(number: number): Box3 | undefined {
    const bed = this.boxes.get(number);
    return bed && this.toView(bed);
  }

  private toView(bed: Box3): Box3 {
    return bed.clone().applyMatrix4(this.root.matrix);
  }

  draw(color: string, nameOf: (number: number) => string): void {
    this.clear();
    for (const [number, { min, max }] of this.boxes) {
      const [width, depth] = [max.x - min.x, max.y - min.y];
      const z = min.z - depth * GAP_RATIO;
      const surface = new Mesh(new PlaneGeometry(width, depth), see(color, 0.07));
      surface.position.set(min.x + width / 2, min.y + depth / 2, z);
      const name = drawName(nameOf(number), depth * NAME_RATIO, color);
      name.position.set(min.x, min.y - depth * NAME_RATIO * NAME_GAP_RATIO, z);
      const lines = [drawLines(listGrid(min, max, z), color, 0.2), drawLines(listOutline(min, max, z), color, 0.9)];
      this.root.add(surface, ...lines, name);
    }
  }

  clear(): void {
    for (const child of this.root.children as (Mesh<BufferGeometry, MeshBasicMaterial> | LineSegments)[]) {
      child.geometry.dispose();
      const material = child.material as Material & { map?: CanvasTexture | null };
      material.map?.dispose();
      material.dispose();
    }
    this.root.clear();
  }
}

function see(color: string, opacity: number): MeshBasicMaterial {
  return new MeshBasicMaterial({ color, opacity, transparent: true, side: DoubleSide, depthWrite: false });
}

function drawLines(positions: number[], color: string, opacity: number): LineSegments {
  const geometry = new BufferGeometry().setAttribute("position", new BufferAttribute(new Float32Array(positions), 3));
  return new LineSegments(geometry, new LineBasicMaterial({ color, opacity, transparent: true, depthWrite: false }));
}

function listOutline(min: Vector3, max: Vector3, z: number): number[] {
  const corners = [min.x, min.y, max.x, min.y, max.x, max.y, min.x, max.y];
  return [0, 1, 2, 3].flatMap((side) =>
    [side, (side + 1) % 4].flatMap((corner) => [corners[2 * corner] ?? 0, corners[2 * corner + 1] ?? 0, z]),
  );
}

function listGrid(min: Vector3, max: Vector3, z: number): number[] {
  const lines: number[] = [];
  for (let x = min.x + LINE_MM; x < max.x - 1e-6; x += LINE_MM) lines.push(x, min.y, z, x, max.y, z);
  for (let y = min.y + LINE_MM; y < max.y - 1e-6; y += LINE_MM) lines.push(min.x, y, z, max.x, y, z);
  return lines;
}

/** Return a text of this height that lies on the bed, with its upper left corner at the origin. */
function drawName(text: string, height: number, color: string): Mesh {
  const canvas = document.createElement("canvas");
  const font = `600 ${NAME_FONT_PIXELS}px system-ui, sans-serif`;
  const context = canvas.getContext("2d");
  if (context) {
    context.font = font;
    canvas.width = Math.ceil(context.measureText(text).width);
    canvas.height = NAME_PIXELS;
    // A new size resets the context.
    context.font = font;
    context.fillStyle = "#fff";
    context.textBaseline = "middle";
    context.fillText(text, 0, NAME_PIXELS / 2);
  }
  const width = (height * canvas.width) / canvas.height;
  const material = see(color, 1);
  material.map = new CanvasTexture(canvas);
  const geometry = new PlaneGeometry(width, height);
  geometry.translate(width / 2, -height / 2, 0);
  return new Mesh(geometry, material);
}
