/** The camera of the view: how it is moved, where it flies, and from where it sees the whole model. */

import { OrthographicCamera, PerspectiveCamera, Quaternion, Vector3, type Matrix4, type Sphere } from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

import { fitOutline } from "./fit";
import { VIEWS } from "./options";
import { mixOffsets, turnOffset } from "./orbit";
import type { Orientation } from "./view-cube";

const FIELD_OF_VIEW_DEG = 35;
/** Tangent of half of the field of view. */
const TANGENT = Math.tan((FIELD_OF_VIEW_DEG * Math.PI) / 360);
const FIT_RATIO = 1.12;
const FLIGHT_MS = 450;
/** Share of the view, across or up, that the outline of the model fills. */
const OUTLINE_RATIO = 1.1;
/** Least share of the height that tools at the top and at the bottom leave to the model. */
const MIN_FREE_RATIO = 0.3;
/** Relative change of the camera distance above which a view no longer counts as fitted. */
const FITTED_RATIO = 1e-4;
/** Least distance from the target; a model without extent has none. */
const MIN_DISTANCE_MM = 1e-3;

/** Rectangle in which the camera draws, and what tools cover of it, in pixels. */
export interface Window {
  width: number;
  height: number;
  above: number;
  below: number;
}

export class ViewCamera {
  private readonly perspective = new PerspectiveCamera(FIELD_OF_VIEW_DEG, 1, 0.1, 10_000);
  private readonly orthographic = new OrthographicCamera();
  private readonly controls: OrbitControls;
  current: PerspectiveCamera | OrthographicCamera = this.perspective;
  private readonly lastTurn = new Quaternion();
  /** Target and distance of the last fit. */
  private fitted: { target: Vector3; distance: number } | null = null;
  private flight: { start: number; from: [Vector3, Vector3]; to: [Vector3, Vector3] } | null = null;

  constructor(
    canvas: HTMLCanvasElement,
    private readonly invalidate: () => void,
  ) {
    this.perspective.up.set(0, 0, 1);
    this.orthographic.up.set(0, 0, 1);
    this.perspective.position.set(...VIEWS.iso);
    this.controls = new OrbitControls(this.current, canvas);
    this.controls.rotateSpeed = 0.9;
    this.controls.zoomToCursor = true;
    this.controls.addEventListener("change", invalidate);
  }

  get target(): Vector3 {
    return this.controls.target;
  }

  private get offset(): Vector3 {
    return this.current.position.clone().sub(this.target);
  }

  /** Direction from the target to the camera. */
  get direction(): Vector3 {
    return this.offset.normalize();
  }

  /** Position and target, after the flight if there is one. */
  private get goal(): [position: Vector3, target: Vector3] {
    return this.flight?.to ?? [this.current.position, this.target];
  }

  /** Direction from the target to the camera, after the flight if there is one. */
  get aim(): Vector3 {
    const [position, target] = this.goal;
    return position.clone().sub(target).normalize();
  }

  /** Return whether the camera has not moved since the last fit, except for turns. */
  isFitted(): boolean {
    if (!this.fitted) return false;
    const [position, target] = this.goal;
    const { target: last, distance } = this.fitted;
    const change = Math.max(target.distanceTo(last), Math.abs(position.distanceTo(target) - distance));
    return change < FITTED_RATIO * distance;
  }

  get orientation(): Orientation {
    const [right, up, back] = [new Vector3(), new Vector3(), new Vector3()];
    // An empty view draws nothing, so that its camera has not been updated.
    this.current.updateMatrixWorld();
    this.current.matrixWorld.extractBasis(right, up, back);
    return { right: right.toArray(), up: up.toArray(), back: back.toArray() };
  }

  /** Return whether the camera has turned since the last call. */
  hasTurned(): boolean {
    const isSame = this.lastTurn.equals(this.current.quaternion);
    this.lastTurn.copy(this.current.quaternion);
    return !isSame;
  }

  setOrthographic(isOrthographic: boolean): void {
    const next = isOrthographic ? this.orthographic : this.perspective;
    next.position.copy(this.current.position);
    next.quaternion.copy(this.current.quaternion);
    this.orthographic.zoom = 1;
    this.current = next;
    this.controls.object = next;
    this.controls.update();
  }

  /** Look from a direction, so that an outline of points fills what the tools leave free. */
  fit(outline: number[], center: Vector3, direction: Vector3, window: Window, isAnimated: boolean): void {
    const { width, height, above, below } = window;
    const free = Math.max(MIN_FREE_RATIO, 1 - (above + below) / height) / OUTLINE_RATIO;
    const right = new Vector3(0, 0, 1).cross(direction).normalize();
    const up = direction.clone().cross(right);
    const { target, distance } = fitOutline(outline, center.toArray(), {
      right: right.toArray(),
      up: up.toArray(),
      back: direction.toArray(),
      tangents: [(TANGENT * width) / height / OUTLINE_RATIO, TANGENT * free],
      isOrthographic: this.current === this.orthographic,
    });
    const reach = Math.max(distance, MIN_DISTANCE_MM);
    // The middle of the view is not the middle of what the tools leave free.
    const shift = (TANGENT * reach * (above - below)) / height;
    const middle = new Vector3(...target).addScaledVector(up, shift);
    this.moveTo(middle, direction, reach, isAnimated);
    this.fitted = { target: middle, distance: reach };
  }

  /** Look at a sphere from a direction, so that it fills the window. */
  fitSphere({ center, radius }: Sphere, direction: Vector3, { width, height }: Window, isAnimated: boolean): void {
    const narrow = Math.min(1, width / height);
    const reach = (Math.max(radius, MIN_DISTANCE_MM) * FIT_RATIO) / Math.sin(Math.atan(TANGENT * narrow));
    this.moveTo(center, direction, reach, isAnimated);
  }

  private moveTo(center: Vector3, direction: Vector3, distance: number, isAnimated: boolean): void {
    this.orthographic.zoom = 1;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const position = center.clone().addScaledVector(direction, distance);
    if (isAnimated && !isCalm) this.flyTo(position, center);
    else {
      this.flight = null;
      this.current.position.copy(position);
      this.target.copy(center);
      this.controls.update();
    }
    this.invalidate();
  }

  private flyTo(position: Vector3, target: Vector3): void {
    const from: [Vector3, Vector3] = [this.current.position.clone(), this.target.clone()];
    this.flight = { start: performance.now(), from, to: [position, target.clone()] };
  }

  /** Fly nearer to a point, in the present direction. */
  approach(point: Vector3): void {
    this.flyTo(point.clone().addScaledVector(this.offset, 0.6), point);
    this.invalidate();
  }

  /** Move along a flight; call this before each frame. */
  advance(): void {
    if (!this.flight) return;
    const { start, from, to } = this.flight;
    const share = Math.min(1, (performance.now() - start) / FLIGHT_MS);
    const eased = 1 - (1 - share) ** 3;
    const target = from[1].clone().lerp(to[1], eased);
    const offset = mixOffsets(from[0].clone().sub(from[1]), to[0].clone().sub(to[1]), eased);
    this.current.position.copy(target).add(offset);
    this.target.copy(target);
    this.controls.update();
    if (share === 1) this.flight = null;
    else this.invalidate();
  }

  /** Follow a model that moves, so that it keeps its place in the window. */
  follow(change: Matrix4): void {
    const offset = this.offset;
    this.target.applyMatrix4(change);
    this.current.position.copy(this.target).addScaledVector(offset, Math.cbrt(Math.abs(change.determinant())));
    this.flight = null;
    this.controls.update();
  }

  turn(turnRad: number, tiltRad: number): void {
    this.setOffset(turnOffset(this.offset, turnRad, tiltRad));
  }

  zoom(ratio: number): void {
    this.setOffset(this.offset.multiplyScalar(ratio));
  }

  private setOffset(offset: Vector3): void {
    this.current.position.copy(this.target).add(offset);
    this.controls.update();
    this.invalidate();
  }

  /** Set the frustum for a window of this size in pixels, and a depth that reaches around a sphere. */
  frame(width: number, height: number, { center, radius }: Sphere, beyond: number): void {
    const distance = this.current.position.distanceTo(this.target);
    const reach = this.current.position.distanceTo(center) + radius * 4 + beyond;
    this.perspective.aspect = width / height;
    this.perspective.near = Math.max(reach / 20_000, distance / 200);
    this.perspective.far = reach;
    const half = distance * TANGENT;
    this.orthographic.left = (-half * width) / height;
    this.orthographic.right = (half * width) / height;
    this.orthographic.top = half;
    this.orthographic.bottom = -half;
    this.orthographic.near = -reach;
    this.orthographic.far = reach;
    this.current.updateProjectionMatrix();
    this.current.updateMatrixWorld();
  }

  dispose(): void {
    this.controls.dispose();
  }
}
