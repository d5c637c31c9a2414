/** Lines and points that the view draws beside the model: the bed of a printer, dimensions, measurements. */

import {
  BoxGeometry,
  BufferGeometry,
  DoubleSide,
  Float32BufferAttribute,
  Group,
  Line,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  MeshBasicMaterial,
  PlaneGeometry,
  Points,
  PointsMaterial,
  type Box3,
  type Material,
} from "three";

import type { Triple } from "../types";
import type { Labels } from "./labels";
import type { Point, Tool } from "./measure";
import type { Measurement } from "./measuring";
import type { Axis } from "./options";

/** Millimeters between the lines of a bed, and between those that are stronger. */
const LINE_MM = 10;
const MAJOR_LINE_MM = 50;

/** How far a plane of a cut reaches beyond a model, per diagonal. */
const PLANE_MARGIN_RATIO = 0.04;

/** Plane at which the next conversion cuts the model, by its position in the view. */
export interface Cut {
  axis: Axis;
  at: number;
}

export class Marks {
  readonly root = new Group();
  formatLabel: (tool: Tool, value: number) => string = (_, value) => String(value);
  formatLength: (value: number) => string = String;

  constructor(private readonly labels: Labels) {}

  clear(): void {
    for (const child of [...this.root.children] as Line<BufferGeometry, Material>[]) {
      this.root.remove(child);
      child.geometry.dispose();
      child.material.dispose();
    }
  }

  /** Draw the bed of a printer below the middle of a box. */
  addBed(bed: Triple, box: Box3, color: string): void {
    const [width, depth, height] = bed;
    const [left, front, z] = placeBed(bed, box);
    const { minor, major } = listBedLines([left, front, z], width, depth);
    this.addLines(minor, color, 0.22);
    this.addLines([...major, ...listBoxLines([left, front, z], [left + width, front + depth, z + height])], color, 0.5);
    this.addSurface(new PlaneGeometry(width, depth).translate(left + width / 2, front + depth / 2, z), color, 0.16);
  }

  /** Draw a box with the lengths of its sides. */
  addBox({ min, max }: Box3, color: string): void {
    this.addLines(listBoxLines(min.toArray(), max.toArray()), color, 0.8);
    const middle = min.clone().add(max).multiplyScalar(0.5);
    this.labels.add(this.formatLength(max.x - min.x), [middle.x, min.y, min.z], "x");
    this.labels.add(this.formatLength(max.y - min.y), [max.x, middle.y, min.z], "y");
    this.labels.add(this.formatLength(max.z - min.z), [max.x, min.y, middle.z], "z");
  }

  /** Draw a plane at which a box is cut, a little larger than the box. */
  addPlane({ axis, at }: Cut, { min, max }: Box3, color: string): void {
    const [low, high] = [min.clone(), max.clone()];
    const margin = min.distanceTo(max) * PLANE_MARGIN_RATIO;
    low.subScalar(margin)[axis] = at;
    high.addScalar(margin)[axis] = at;
    this.addLines(listBoxLines(low.toArray(), high.toArray()), color, 1);
    const size = high.clone().sub(low);
    const middle = low.add(high).multiplyScalar(0.5).toArray();
    this.addSurface(new BoxGeometry(size.x, size.y, size.z).translate(...middle), color, 0.3);
  }

  addMeasurement({ tool, points, value }: Measurement, color: string): void {
    this.addPoints(points, color);
    const path = tool === "radius" ? [...points, points[0] ?? [0, 0, 0]] : points;
    const geometry = new BufferGeometry().setAttribute("position", new Float32BufferAttribute(path.flat(), 3));
    const line = new Line(geometry, new LineBasicMaterial({ color, depthTest: false, transparent: true }));
    line.renderOrder = 2;
    this.root.add(line);
    this.labels.add(this.formatLabel(tool, value), centerOf(tool === "angle" ? points.slice(1, 2) : points), "measure");
  }

  addPoints(points: Point[], color: string): void {
    const geometry = new BufferGeometry().setAttribute("position", new Float32BufferAttribute(points.flat(), 3));
    const material = new PointsMaterial({
      color,
      size: 9,
      sizeAttenuation: false,
      depthTest: false,
      transparent: true,
    });
    const object = new Points(geometry, material);
    object.renderOrder = 3;
    this.root.add(object);
  }

  /** Add a transparent surface. */
  private addSurface(geometry: BufferGeometry, color: string, opacity: number): void {
    const material = new MeshBasicMaterial({
      color,
      transparent: true,
      opacity,
      side: DoubleSide,
      depthWrite: false,
      // Faces of the model in the same plane are drawn in front, so that they do not flicker.
      polygonOffset: true,
      polygonOffsetFactor: 1,
      polygonOffsetUnits: 1,
    });
    this.root.add(new Mesh(geometry, material));
  }

  private addLines(positions: number[], color: string, opacity: number): void {
    const geometry = new BufferGeometry().setAttribute("position", new Float32BufferAttribute(positions, 3));
    this.root.add(
      new LineSegments(geometry, new LineBasicMaterial({ color, transparent: true, opacity, depthWrite: false })),
    );
  }
}

function centerOf(points: Point[]): Point {
  const [x, y, z] = points.reduce((sum, point) => [sum[0] + point[0], sum[1] + point[1], sum[2] + point[2]], [0, 0, 0]);
  return [x / points.length, y / points.length, z / points.length];
}

/** Return the left corner, at the front, of a bed below the middle of a box. */
function placeBed([width, depth]: Triple, { min, max }: Box3): Triple {
  return [(min.x + max.x - width) / 2, (min.y + max.y - depth) / 2, min.z];
}

/** Return the corners of a bed below the middle of a box, three numbers for each corner. */
export function listBedCorners(bed: Triple, box: Box3): number[] {
  const [left, front, z] = placeBed(bed, box);
  const [right, back] = [left + bed[0], front + bed[1]];
  return [left, front, z, right, front, z, left, back, z, right, back, z];
}

/** Return the ends of the lines across a bed, from its left corner at the front, three numbers for each end. */
export function listBedLines(
  [left, front, z]: Point,
  width: number,
  depth: number,
): { minor: number[]; major: number[] } {
  const lines: { minor: number[]; major: number[] } = { minor: [], major: [] };
  const choose = (at: number): number[] => (at % MAJOR_LINE_MM === 0 ? lines.major : lines.minor);
  for (let x = 0; x <= width + 1e-6; x += LINE_MM) choose(x).push(left + x, front, z, left + x, front + depth, z);
  for (let y = 0; y <= depth + 1e-6; y += LINE_MM) choose(y).push(left, front + y, z, left + width, front + y, z);
  return lines;
}

/** Return the ends of the twelve edges of a box, three numbers for each end. */
export function listBoxLines(min: Point, max: Point): number[] {
  const corner = (index: number): Point => [
    index & 1 ? max[0] : min[0],
    index & 2 ? max[1] : min[1],
    index & 4 ? max[2] : min[2],
  ];
  return [0, 1, 2, 3, 4, 5, 6, 7].flatMap((index) =>
    [1, 2, 4].flatMap((side) => (index & side ? [] : [...corner(index), ...corner(index | side)])),
  );
}
