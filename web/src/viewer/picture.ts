/** Preview of a model as three.js objects in millimeters, Z up. */

import {
  BackSide,
  Box3,
  BufferAttribute,
  BufferGeometry,
  DoubleSide,
  EdgesGeometry,
  FrontSide,
  Group,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Mesh,
  MeshBasicMaterial,
  MeshLambertMaterial,
  MeshStandardMaterial,
  type Material,
  type Object3D,
  type Plane,
  Vector3,
} from "three";
import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";

import { isColored } from "../chain";
import { layersOf } from "../layers";
import type { DefectKind, PreviewFacts, Report, Triple } from "../types";
import { findMotion, findShift } from "./alignment";
import { SHARP_EDGE_DEG } from "./creases";
import { DEFECT_COLORS } from "./look";
import { areOutlines } from "./outlines";
import { drawLines, outline, toOverlay } from "./overlays";
import { colorOfPiece } from "./pieces";
import { toSmooth } from "./smoothing";
import { hasSlowWebGl } from "./speed";

/** glTF is in meters, Y up (glTF 2.0 §3.4); the page shows millimeters, Z up. */
export const TO_MILLIMETERS = new Matrix4().set(1000, 0, 0, 0, 0, 0, -1000, 0, 0, 1000, 0, 0, 0, 0, 0, 1);
const DEFECTS_NODE = "meshhub:defects";
/** Triangles up to which edges are drawn: three.js takes about 1 ms per 200 triangles to find them. */
const MAX_EDGE_TRIANGLES = 30_000;
/** Surfaces are drawn behind lines at the same place. */
const BEHIND_LINES = { side: DoubleSide, polygonOffset: true, polygonOffsetUnits: 1, polygonOffsetFactor: 1 } as const;
/** Least opacity of a surface; some programs write that their materials are invisible, but they print. */
const MIN_OPACITY = 0.35;
/** Minimum linear brightness of a material; a black surface has no shading, and no outline on a dark page. */
const MIN_BRIGHTNESS = 0.04;
/** Roughness of a printed filament. */
const PLASTIC_ROUGHNESS = 0.55;

/** Lambert shading draws a frame of software WebGL in about half the time of physically based shading. */
type Shaded = MeshLambertMaterial | MeshStandardMaterial;

function toPlastic(): Shaded {
  if (hasSlowWebGl()) return new MeshLambertMaterial(BEHIND_LINES);
  return new MeshStandardMaterial({ ...BEHIND_LINES, roughness: PLASTIC_ROUGHNESS, metalness: 0 });
}

export interface PartNode {
  name: string;
  depth: number;
  triangles: number;
  object: Object3D;
}

export interface Display {
  wireframe: boolean;
  textures: boolean;
  defects: boolean;
  changes: boolean;
  clay: string;
  cut: string;
  edge: string;
}

/** A mesh of the model, with its edges, and with the twins that draw its wireframe and the inside of a section. */
interface Surface {
  mesh: Mesh;
  /** Geometry of the mesh while no draft takes its place. */
  own: BufferGeometry;
  edges: LineSegments | null;
  colored: Shaded | Shaded[];
  wire: Mesh;
  inside: Mesh;
}

export class Picture {
  readonly root = new Group();
  readonly defects = new Group();
  readonly changes = new Group();
  readonly box = new Box3();
  readonly parts: PartNode[] = [];
  readonly meshes: Mesh[] = [];
  /** From the model that was read to this one, if it is its conversion. */
  readonly motion = new Matrix4();
  /** From where the picture is itself to where the view shows it. */
  readonly placement = new Matrix4();
  /** Whether the picture stands where the model was that was read. */
  private isAligned = false;
  private readonly surfaces: Surface[] = [];
  private readonly clay = toPlastic();
  private readonly wire = new MeshBasicMaterial({ wireframe: true, transparent: true, opacity: 0.35, color: "#000" });
  private readonly inside = new MeshBasicMaterial({ side: BackSide });
  private readonly edge = new LineBasicMaterial({ transparent: true, opacity: 0.55 });
  private readonly materials = new Map<Material, Shaded>();
  /** Materials of the meshes of a model that was divided. */
  private readonly pieces = new Map<Mesh, Shaded>();
  readonly hasAppearance: boolean;

  constructor(
    private readonly content: Object3D,
    readonly facts: PreviewFacts,
  ) {
    const scene = content;
    this.root.matrixAutoUpdate = false;
    this.root.matrix.copy(TO_MILLIMETERS);
    const defects = scene.children.find(({ name, userData }) => isDefects(name, userData));
    defects?.removeFromParent();
    this.changes.matrixAutoUpdate = false;
    this.root.add(scene, this.defects, this.changes);
    this.root.updateMatrixWorld(true);
    this.box.setFromObject(scene);
    this.collectParts(scene, 0);
    scene.traverse((object) => object instanceof Mesh && this.meshes.push(object as Mesh));
    for (const mesh of this.meshes) this.addSurface(mesh);
    // White is a color, too, and a preview has a white material for what has none: the facts decide.
    this.hasAppearance = isColored(facts.inspection.model.features);
    for (const child of defects?.children ?? []) this.addDefect(child);
    this.root.updateMatrixWorld(true);
  }

  /** Show a conversion at the place of the model, by the motion in its report. */
  alignTo(before: Picture, report: Report | null): void {
    const motion = findMotion(report) ?? new Matrix4();
    const shift = findShift(before.measure(motion), this.box);
    if (shift) motion.premultiply(shift);
    this.motion.copy(motion);
    this.isAligned = false;
    this.setAligned(true);
  }

  /** Return points of the surface as it stands in the view, three numbers for each. */
  listPoints(maxCount: number): number[] {
    this.root.updateMatrixWorld(true);
    const total = this.meshes.reduce((sum, { geometry }) => sum + geometry.getAttribute("position").count, 0);
    const step = Math.max(1, Math.ceil(total / maxCount));
    const points: number[] = [];
    const point = new Vector3();
    for (const { geometry, matrixWorld } of this.meshes) {
      const positions = geometry.getAttribute("position");
      for (let index = 0; index < positions.count; index += step) {
        points.push(...point.fromBufferAttribute(positions, index).applyMatrix4(matrixWorld).toArray());
      }
    }
    return points;
  }

  /** Return the box of the model after a motion. */
  measure(motion: Matrix4): Box3 {
    const own = this.root.matrix.clone();
    this.root.matrix.multiplyMatrices(motion, TO_MILLIMETERS);
    this.root.updateMatrixWorld(true);
    const box = this.enclose(this.content);
    this.root.matrix.copy(own);
    this.root.updateMatrixWorld(true);
    return box;
  }

  /** Return the box of an object with its own triangles; those of a draft are only shown. */
  private enclose(object: Object3D): Box3 {
    const box = new Box3();
    const point = new Vector3();
    for (const { mesh, own } of this.surfaces) {
      if (!isInside(mesh, object)) continue;
      const positions = own.getAttribute("position");
      for (let index = 0; index < positions.count; index++) {
        box.expandByPoint(point.fromBufferAttribute(positions, index).applyMatrix4(mesh.matrixWorld));
      }
    }
    return box;
  }

  /** Show a conversion at the place of the model, or where it is itself. */
  setAligned(isAligned: boolean): void {
    if (isAligned === this.isAligned) return;
    this.isAligned = isAligned;
    this.place(isAligned ? this.motion.clone().invert() : new Matrix4());
  }

  /** Show the picture elsewhere. */
  place(placement: Matrix4): void {
    if (placement.equals(this.placement)) return;
    this.placement.copy(placement);
    this.root.matrix.multiplyMatrices(placement, TO_MILLIMETERS);
    this.root.updateMatrixWorld(true);
    this.box.copy(this.enclose(this.content));
  }

  /** Return the matrix of a mesh at the place where a model and its conversion are compared. */
  comparedMatrix(mesh: Mesh): Matrix4 {
    this.root.updateMatrixWorld(true);
    return this.comparedRoot().multiply(this.root.matrixWorld.clone().invert()).multiply(mesh.matrixWorld);
  }

  private comparedRoot(): Matrix4 {
    return this.motion.clone().invert().multiply(TO_MILLIMETERS);
  }

  /** Millimeters of the model per millimeter in the view. */
  get scale(): number {
    return this.isAligned ? Math.cbrt(Math.abs(this.motion.determinant())) : 1;
  }

  /** Whether a conversion stands where the model was that was read. */
  get isInPlace(): boolean {
    return this.motion.equals(new Matrix4());
  }

  /** Hide the parts that another picture of the same model hides. */
  copyVisibility({ parts }: Picture): void {
    if (parts.length !== this.parts.length) return;
    this.parts.forEach(({ object }, index) => (object.visible = parts[index]?.object.visible ?? true));
  }

  private collectParts(object: Object3D, depth: number): void {
    for (const child of object.children) {
      const triangles = countTriangles(child);
      if (triangles === 0) continue;
      this.parts.push({ name: String(child.userData["name"] ?? ""), depth, triangles, object: child });
      if (!isPrimitiveGroup(child)) this.collectParts(child, depth + 1);
    }
  }

  /** Return the size of a part as the view shows it, and its colors. */
  describePart({ object }: PartNode): { size: Triple; colors: string[] } {
    const size = this.enclose(object).getSize(new Vector3()).toArray();
    const colors = new Set<string>();
    for (const { mesh, colored } of this.hasAppearance ? this.surfaces : []) {
      if (!isInside(mesh, object) || mesh.geometry.hasAttribute("color")) continue;
      for (const { map, userData } of [colored].flat()) if (!map) colors.add(`#${String(userData["color"])}`);
    }
    return { size, colors: [...colors] };
  }

  /** Return the number of the deepest part with a mesh; null if there is none. */
  findPart(mesh: Mesh): number | null {
    const index = this.parts.findLastIndex(({ object }) => isInside(mesh, object));
    return index < 0 ? null : index;
  }

  private addSurface(mesh: Mesh): void {
    const hasNormals = "normal" in mesh.geometry.attributes;
    const convert = (material: Material): Shaded => this.toShaded(material as MeshStandardMaterial);
    const colored = Array.isArray(mesh.material) ? mesh.material.map(convert) : convert(mesh.material);
    const hasEdges = !hasNormals && !this.facts.is_reduced && this.facts.triangles <= MAX_EDGE_TRIANGLES;
    const edges = hasEdges ? new EdgesGeometry(mesh.geometry, SHARP_EDGE_DEG) : null;
    if (!hasNormals) mesh.geometry = toSmooth(mesh.geometry);
    const wire = new Mesh(mesh.geometry, this.wire);
    const inside = new Mesh(mesh.geometry, this.inside);
    wire.visible = inside.visible = false;
    mesh.add(wire, inside);
    const hasOutlines = edges !== null && areOutlines(edges.getAttribute("position").array as Float32Array);
    const lines = hasOutlines ? new LineSegments(edges, this.edge) : null;
    if (lines) mesh.add(lines);
    this.surfaces.push({ mesh, own: mesh.geometry, edges: lines, colored, wire, inside });
  }

  /** Geometries of the meshes of the model. */
  get geometries(): BufferGeometry[] {
    return this.surfaces.map(({ own }) => own);
  }

  /** Show other geometries in place of those of the meshes; null: their own. */
  setDraft(geometries: BufferGeometry[] | null): void {
    this.surfaces.forEach(({ mesh, own, edges, wire, inside }, index) => {
      if (mesh.geometry !== own) free(mesh.geometry);
      mesh.geometry = wire.geometry = inside.geometry = geometries?.[index] ?? own;
      if (edges) edges.visible = geometries === null;
    });
  }

  private toShaded(source: MeshStandardMaterial): Shaded {
    const known = this.materials.get(source);
    if (known) return known;
    // GLTFLoader sets it for meshes without normals
    source.flatShading = false;
    source.opacity = Math.max(source.opacity, MIN_OPACITY);
    source.userData["color"] = source.color.getHexString();
    source.color.addScalar(Math.max(0, MIN_BRIGHTNESS - Math.max(...source.color.toArray())));
    const result = hasSlowWebGl()
      ? new MeshLambertMaterial({
          name: source.name,
          userData: source.userData,
          color: source.color,
          map: source.map,
          alphaMap: source.alphaMap,
          transparent: source.transparent,
          opacity: source.opacity,
          alphaTest: source.alphaTest,
          vertexColors: source.vertexColors,
          ...BEHIND_LINES,
        })
      : Object.assign(source, BEHIND_LINES);
    this.materials.set(source, result);
    return result;
  }

  private addDefect(object: Object3D): void {
    const kind = (object.userData["kind"] ?? object.name) as DefectKind;
    if (!(kind in DEFECT_COLORS)) return;
    const color = DEFECT_COLORS[kind];
    object.traverse((child) => {
      const geometry = (child as Mesh).geometry as BufferGeometry | undefined;
      const positions = geometry?.getAttribute("position");
      if (!positions) return;
      if (child instanceof LineSegments) addAll(this.defects, drawLines(positions.array as Float32Array, color));
      else if (child instanceof Mesh) {
        this.defects.add(new Mesh(geometry, toOverlay(color)));
        addAll(this.defects, outline(positions.array as Float32Array, color));
      }
    });
  }

  /** Give each part of a model without colors its own one. */
  colorPieces(): void {
    const parts = [...new Set(this.meshes.map((mesh) => this.findPart(mesh)))];
    if (parts.length < 2) return;
    for (const mesh of this.meshes) {
      const material = toPlastic();
      material.color.set(colorOfPiece(parts.indexOf(this.findPart(mesh))));
      this.pieces.set(mesh, material);
    }
  }

  /** Color the triangles that a conversion changed, given by their corners where both models are compared. */
  setChanges(corners: Float32Array, color: string): void {
    for (const child of [...this.changes.children] as Mesh[]) {
      child.geometry.dispose();
      (child.material as Material).dispose();
      child.removeFromParent();
    }
    if (corners.length === 0) return;
    this.changes.matrix.copy(this.comparedRoot()).invert();
    const geometry = new BufferGeometry().setAttribute("position", new BufferAttribute(corners, 3));
    this.changes.add(new Mesh(geometry, toOverlay(color)));
  }

  apply(display: Display, planes: Plane[]): void {
    const isCut = planes.length > 0;
    // Lines that are cut open show their own color.
    const isToolpath = layersOf(this.facts).length > 0;
    this.clay.color.set(display.clay);
    this.inside.color.set(display.cut);
    this.edge.color.set(display.edge);
    const hasColors = (display.textures && this.hasAppearance) || this.facts.scale !== null;
    for (const { mesh, colored, wire, inside } of this.surfaces) {
      mesh.material = hasColors ? colored : (this.pieces.get(mesh) ?? this.clay);
      wire.visible = display.wireframe;
      inside.visible = isCut && !isToolpath;
      for (const material of [mesh.material].flat()) {
        material.side = isCut && !isToolpath ? FrontSide : DoubleSide;
        material.clippingPlanes = planes;
      }
    }
    this.wire.clippingPlanes = this.inside.clippingPlanes = this.edge.clippingPlanes = planes;
    this.defects.visible = display.defects;
    this.changes.visible = display.changes;
    for (const child of [...this.defects.children, ...this.changes.children])
      ((child as Mesh).material as Material).clippingPlanes = planes;
  }

  dispose(): void {
    this.setDraft(null);
    this.root.traverse((object) => {
      const mesh = object as Partial<Mesh>;
      if (mesh.geometry) free(mesh.geometry);
      for (const material of [mesh.material ?? []].flat()) material.dispose();
    });
    for (const material of [this.clay, this.wire, this.inside, this.edge, ...this.pieces.values()]) material.dispose();
    for (const [source, material] of this.materials) {
      source.dispose();
      // A texture keeps its pixels outside of the memory of JavaScript.
      if (material.map?.image instanceof ImageBitmap) material.map.image.close();
      material.map?.dispose();
      material.dispose();
    }
    this.root.removeFromParent();
  }
}

function free(geometry: BufferGeometry): void {
  geometry.dispose();
  geometry.boundsTree = undefined;
}

function isDefects(name: string, userData: Record<string, unknown>): boolean {
  // GLTFLoader removes the colon from names and keeps the original in `userData.name`.
  return (userData["name"] ?? name) === DEFECTS_NODE;
}

/** Return whether the children are the primitives of one glTF mesh, so that they are one part together. */
function isPrimitiveGroup(object: Object3D): boolean {
  return object.children.every((child) => child instanceof Mesh && !("name" in child.userData));
}

function countTriangles(object: Object3D): number {
  let count = 0;
  object.traverse((child) => {
    if (!(child instanceof Mesh)) return;
    const { index, attributes } = child.geometry as BufferGeometry;
    count += (index?.count ?? attributes["position"]?.count ?? 0) / 3;
  });
  return count;
}

export async function parsePicture(data: ArrayBuffer): Promise<Picture> {
  const { scene, asset } = await new GLTFLoader().parseAsync(data, "");
  const { extras } = asset as { extras?: { meshhub?: PreviewFacts } };
  if (!extras?.meshhub) throw new Error("the preview holds no facts");
  return new Picture(scene, extras.meshhub);
}

/** Return whether an object is another one or below it. */
export function isInside(object: Object3D, other: Object3D): boolean {
  for (let each: Object3D | null = object; each; each = each.parent) if (each === other) return true;
  return false;
}

/** Add objects to another one; three.js rejects a call without any. */
function addAll(parent: Object3D, children: readonly Object3D[]): void {
  for (const child of children) parent.add(child);
}
