/** What the view shows: a model and its conversion, or others in their place, and where they stand. */

import { Box3, Matrix4, Sphere, Vector3, type Scene } from "three";

import type { Bed } from "../beds";
import type { Pose } from "../pose";
import type { Triple } from "../types";
import { Beds } from "./beds";
import { INITIAL_OPTIONS, type Mode } from "./options";
import { chooseDirection, type Hit } from "./picking";
import type { Picture } from "./picture";
import { placePose, type Posing } from "./posing";

/** Points of a model by which its outline is measured. */
const OUTLINE_POINTS = 10_000;

/** Radius around a tiny place that the view shows, per radius of the model. */
const MIN_PLACE_RATIO = 0.12;

export class Shown {
  /** Model that was read, and its conversion; heat maps and drafts may stand for them. */
  model: Picture | null = null;
  output: Picture | null = null;
  before: Picture | null = null;
  after: Picture | null = null;
  pose: Pose | null = null;
  mode: Mode = INITIAL_OPTIONS.mode;
  readonly beds = new Beds();
  /** What the view shows, and around it a sphere with the beds. */
  readonly box = new Box3();
  readonly sphere = new Sphere();

  constructor(private readonly scene: Scene) {}

  /** Show other pictures. Returns whether there are any. */
  replace(model: Picture | null, output: Picture | null, standIns: (Picture | null)[], beds: Bed[]): boolean {
    const before = standIns[0] ?? model;
    const after = output && (standIns[1] ?? output);
    if (before === this.before && after === this.after) return false;
    this.remove();
    this.model = model;
    this.output = output;
    this.before = before;
    this.after = after;
    for (const picture of [before, after]) if (picture) this.scene.add(picture.root);
    this.align(false);
    this.beds.place(output?.box ?? null, beds);
    this.align(this.mode !== "after");
    return true;
  }

  remove(): void {
    this.before?.root.removeFromParent();
    this.after?.root.removeFromParent();
  }

  /** Show a conversion at the place of the model, to compare both, or where it is itself. */
  align(isAligned: boolean): void {
    for (const picture of [this.output, this.after]) picture?.setAligned(isAligned);
    this.beds.align(isAligned ? (this.output?.motion ?? null) : null);
  }

  /** Place the model as the settings turn and scale it. */
  applyPose(): Posing {
    const { model, pose } = this;
    const posing =
      model && pose
        ? placePose(pose, (motion) => model.measure(motion))
        : { placement: new Matrix4(), offset: new Vector3(), scale: 1 };
    for (const picture of [this.model, this.before]) picture?.place(posing.placement);
    return posing;
  }

  /** Return where the view shows a place of the model. */
  toView(position: Triple): Vector3 {
    const point = new Vector3(...position);
    return this.model && this.mode !== "after" ? point.applyMatrix4(this.model.placement) : point;
  }

  /** Measure what the view shows. */
  enclose(): void {
    const { mode } = this;
    this.box.makeEmpty();
    if (mode !== "after" && this.model) this.box.union(this.model.box);
    if ((mode !== "before" || !this.model) && this.output) this.box.union(this.output.box);
    (mode === "before" ? this.box.clone() : this.beds.around(this.box)).getBoundingSphere(this.sphere);
  }

  /** Return points of the surface of what is shown, and the corners of its beds. */
  listOutline(): number[] {
    const { mode } = this;
    const pictures = mode === "before" ? [this.model] : mode === "after" ? [this.output] : [this.model, this.output];
    const points = pictures.flatMap((picture) => picture?.listPoints(OUTLINE_POINTS) ?? []);
    if (mode !== "before") points.push(...this.beds.listCorners());
    return points;
  }

  /** Return what to look at to see a place from the outside, a little from above, and from where. */
  aimAt(place: { position_mm: Triple; size_mm?: number }, present: Vector3): { around: Sphere; direction: Vector3 } {
    const { center, radius } = this.sphere;
    const position = this.toView(place.position_mm);
    const outward = position.clone().sub(center);
    const isOutside = outward.lengthSq() > (radius * 0.05) ** 2;
    const direction = isOutside ? outward.normalize() : present;
    if (isOutside) direction.setZ(direction.z + 0.35).normalize();
    const picture = this.mode === "after" ? this.after : this.before;
    // The place fills a third of the view, or less if it is tiny.
    const around = new Sphere(position, Math.max(1.5 * (place.size_mm ?? 0), radius * MIN_PLACE_RATIO));
    return { around, direction: picture ? chooseDirection(picture, position, direction, radius) : direction };
  }

  /** Return the part of the model that was hit; a heat map stands for it if it has the same parts. */
  findPart({ object }: Hit, picture: Picture): number | null {
    const isModel = picture === this.before && picture.parts.length === this.model?.parts.length;
    return isModel ? picture.findPart(object) : null;
  }
}
