/** Interactive view of one model, or of a model before and after a conversion. */

import { Box3, Plane, Raycaster, Scene, Sphere, Vector2, Vector3, WebGLRenderer, Matrix4 } from "three";

import type { Bed } from "../beds";
import type { Pose } from "../pose";
import type { Triple } from "../types";
import { Beds } from "./beds";
import { ViewCamera, type Window } from "./camera";
import { nearestOnLine } from "./drag";
import { Ground } from "./ground";
import { Labels } from "./labels";
import { Lights } from "./lights";
import { Marker } from "./marker";
import { Marks, type Cut } from "./marks";
import type { Point } from "./measure";
import { Measuring } from "./measuring";
import {
  INITIAL_OPTIONS,
  VIEW_NAMES,
  VIEWS,
  type Axis,
  type MarkedPlace,
  type Mode,
  type ViewName,
  type ViewOptions,
} from "./options";
import { listPanes, type Pane } from "./panes";
import { castThrough, chooseDirection, type Hit } from "./picking";
import type { Picture } from "./picture";
import { layOnBed, placePose } from "./posing";
import { Resolution } from "./resolution";
import { toPlane } from "./section";
import { Selection } from "./selection";
import { carriesModel, outwardOf, Sides } from "./sides";
import { toPng, toThumbnail } from "./snapshot";
import { hasSlowWebGl } from "./speed";
import type { Orientation } from "./view-cube";

const KEY_TURN_RAD = Math.PI / 18;
const KEY_ZOOM_RATIO = 1.15;
/** Turn and tilt of the arrow keys. */
const KEY_TURNS: Partial<Record<string, [turnRad: number, tiltRad: number]>> = {
  ArrowLeft: [-KEY_TURN_RAD, 0],
  ArrowRight: [KEY_TURN_RAD, 0],
  ArrowUp: [0, -KEY_TURN_RAD],
  ArrowDown: [0, KEY_TURN_RAD],
};
/** Pixels within which a click takes the corner of a triangle. */
const SNAP_PIXELS = 9;
/** Pixels that a pointer may move between press and release of a click. */
const CLICK_PIXELS = 5;
/** Points of a model by which its outline is measured. */
const OUTLINE_POINTS = 10_000;
/** Radius around a tiny place that the view shows, per radius of the model. */
const MIN_PLACE_RATIO = 0.12;

export class Viewer {
  private readonly renderer: WebGLRenderer;
  private readonly resolution: Resolution;
  private readonly scene = new Scene();
  private readonly camera: ViewCamera;
  private readonly lights: Lights;
  private readonly beds = new Beds();
  private readonly ground = new Ground();
  private readonly marker = new Marker();
  private readonly labels: Labels;
  readonly marks: Marks;
  readonly measuring = new Measuring();
  private marked: MarkedPlace | null = null;
  private readonly sides: Sides;
  private readonly selection = new Selection();
  /** Number of the selected part of the model. */
  private selected: number | null = null;
  private pose: Pose | null = null;
  private cuts: readonly Cut[] = [];
  /** Whether the user drags a handle, and whether the model has moved since; it is fitted afterwards. */
  private isHeld = false;
  private hasMoved = false;
  private planes: Plane[] = [];
  /** Model that was read, and its conversion; heat maps may stand for both. */
  private model: Picture | null = null;
  private output: Picture | null = null;
  private before: Picture | null = null;
  private after: Picture | null = null;
  private options = INITIAL_OPTIONS;
  private readonly box = new Box3();
  private readonly sphere = new Sphere();
  private frame = 0;
  private readonly pressed = new Vector2();
  private readonly observer: ResizeObserver;
  private readonly abort = new AbortController();
  formatBed: (number: number) => string = String;
  /** Called with the angles about X and Y that lay the chosen side on the bed. */
  onLay: (angles: [x: number, y: number] | null) => void = () => undefined;
  /** Called with the box of the model in the view, and what leads from there to the millimeters of the result. */
  onPose: (box: Box3, offset: Vector3) => void = () => undefined;
  /** Called with the number of the clicked part of the model; null beside it. */
  onSelect: (part: number | null) => void = () => undefined;
  /** Called for keys that the view does not use. Returns whether they have an effect. */
  onKey: (key: string) => boolean = () => false;
  /** Called when the camera has turned. */
  onLook: (orientation: Orientation) => void = () => undefined;

  /** Throws an Error without WebGL 2. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    container: HTMLElement,
  ) {
    this.renderer = new WebGLRenderer({ canvas, antialias: !hasSlowWebGl(), alpha: true });
    this.renderer.localClippingEnabled = true;
    this.renderer.autoClear = false;
    this.renderer.setClearColor(0, 0);
    this.resolution = new Resolution(this.renderer, () => this.render());
    this.lights = new Lights(this.renderer, this.scene);
    this.labels = new Labels(container);
    this.marks = new Marks(this.labels);
    this.sides = new Sides(this.scene);
    this.scene.add(this.marks.root, this.beds.root, this.ground.root, this.marker.root, this.selection.root);
    this.camera = new ViewCamera(canvas, () => this.invalidate());
    this.listen();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(container);
    this.resize();
  }

  private listen(): void {
    const { canvas } = this;
    const { signal } = this.abort;
    canvas.addEventListener("pointerdown", (event) => this.pressed.set(event.clientX, event.clientY), { signal });
    canvas.addEventListener("pointerup", (event) => this.click(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.hover(event), { signal });
    canvas.addEventListener("pointerleave", () => this.showSide(null), { signal });
    canvas.addEventListener("dblclick", (event) => this.focus(event), { signal });
    canvas.addEventListener("keydown", (event) => this.press(event), { signal });
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.resolution.dispose();
    this.observer.disconnect();
    this.abort.abort();
    this.before?.root.removeFromParent();
    this.after?.root.removeFromParent();
    this.beds.clear();
    this.ground.dispose();
    this.marker.dispose();
    this.sides.dispose();
    this.selection.dispose();
    this.camera.dispose();
    this.lights.dispose();
    this.renderer.dispose();
    // A browser keeps the memory of a canvas that is gone until it collects garbage.
    this.renderer.forceContextLoss();
    this.labels.dispose();
  }

  /**
   * Show a model, and its conversion if there is one. The camera stays if only the conversion or a heat map changes.
   * @param heatMaps Pictures that stand for those of the model and of its conversion.
   * @param beds Beds on which the objects of the conversion stand.
   */
  setPictures(model: Picture | null, output: Picture | null, heatMaps: (Picture | null)[], beds: Bed[]): void {
    const before = heatMaps[0] ?? model;
    const after = output && (heatMaps[1] ?? output);
    if (before === this.before && after === this.after) return;
    const isNew = model !== this.model;
    this.before?.root.removeFromParent();
    this.after?.root.removeFromParent();
    this.model = model;
    this.output = output;
    this.before = before;
    this.after = after;
    this.resolution.reset();
    for (const picture of [before, after]) if (picture) this.scene.add(picture.root);
    this.align(false);
    this.beds.place(output?.box ?? null, beds);
    this.align(this.options.mode !== "after");
    this.applyPose();
    this.enclose();
    if (isNew) {
      this.measuring.clear();
      this.setView("iso", false);
    }
    this.setOptions(this.options);
  }

  /** Show a conversion at the place of the model, to compare both, or where it is itself. */
  private align(isAligned: boolean): void {
    for (const picture of [this.output, this.after]) picture?.setAligned(isAligned);
    this.beds.align(isAligned ? (this.output?.motion ?? null) : null);
  }

  /** Show the model as the settings turn and scale it; null: as it is. */
  setPose(pose: Pose | null): void {
    if (JSON.stringify(pose) === JSON.stringify(this.pose)) return;
    this.pose = pose;
    if (!this.model) return;
    this.applyPose();
    this.measuring.clear();
    this.enclose();
    this.setOptions(this.options);
    this.mark(this.marked);
    this.hasMoved = this.isHeld;
    if (!this.isHeld) this.fit();
  }

  private applyPose(): void {
    const { model, pose } = this;
    const { placement, offset } =
      model && pose
        ? placePose(pose, (motion) => model.measure(motion))
        : { placement: new Matrix4(), offset: new Vector3() };
    for (const picture of [this.model, this.before]) picture?.place(placement);
    this.sides.hide();
    this.onPose(model?.box ?? new Box3(), offset);
  }

  /** Return where the view shows a place of the model. */
  private toView(position: Triple): Vector3 {
    const point = new Vector3(...position);
    return this.model && this.options.mode !== "after" ? point.applyMatrix4(this.model.placement) : point;
  }

  /** Measure what the view shows. */
  private enclose(): void {
    const { mode } = this.options;
    this.box.makeEmpty();
    if (mode !== "after" && this.model) this.box.union(this.model.box);
    if ((mode !== "before" || !this.model) && this.output) this.box.union(this.output.box);
    (mode === "before" ? this.box.clone() : this.beds.around(this.box)).getBoundingSphere(this.sphere);
    const picture = mode === "after" ? this.output : this.model;
    if (!picture) return;
    // The grid stays while a model and its conversion at the same place take turns.
    const extent = picture === this.output && picture.isInPlace ? (this.model ?? picture) : picture;
    this.ground.place(this.renderer, picture.root, picture.box, extent.box, this.color("--line", "#7a8699"));
  }

  /** Return a color of the theme. */
  private color(name: string, fallback: string): string {
    return getComputedStyle(this.canvas).getPropertyValue(name).trim() || fallback;
  }

  setOptions(options: ViewOptions): void {
    if (options.mode !== this.options.mode) this.changeMode(options.mode);
    if (options.isOrthographic !== this.options.isOrthographic) this.camera.setOrthographic(options.isOrthographic);
    if (options.tool !== this.options.tool) this.measuring.picked = [];
    if (options.tool !== "lay-flat") this.sides.hide();
    this.options = options;
    this.planes = options.section && !this.box.isEmpty() ? [toPlane(options.section, this.box)] : [];
    const display = {
      wireframe: options.wireframe,
      textures: options.textures,
      defects: options.defects,
      changes: options.changes,
      clay: this.color("--clay", "#b9c3d3"),
      cut: this.color("--cut", "#e8a33d"),
      edge: this.color("--edge", "#3a4657"),
    };
    this.before?.apply(display, this.planes);
    this.after?.apply(display, this.planes);
    this.drawMarks();
  }

  private changeMode(mode: Mode): void {
    const last = this.options.mode;
    this.options = { ...this.options, mode };
    if ((mode === "after") !== (last === "after")) {
      this.align(mode !== "after");
      this.changePlace(mode !== "after");
    }
    this.enclose();
    // Zoom out when the panes get half as wide.
    if ((mode === "side-by-side") !== (last === "side-by-side")) this.fit();
  }

  /** Change between the place of the model and that of its conversion; the model keeps its place in the window. */
  private changePlace(isAligned: boolean): void {
    const motion: Matrix4 | undefined = this.output?.motion;
    if (motion) this.camera.follow(isAligned ? motion.clone().invert() : motion);
  }

  fit(isAnimated = true): void {
    this.fitFrom(this.camera.direction, isAnimated);
  }

  setView(name: ViewName, isAnimated = true): void {
    this.lookFrom(VIEWS[name], isAnimated);
  }

  /** Look at all of the model from a direction of any length. */
  lookFrom(towards: Triple, isAnimated = true): void {
    const direction = new Vector3(...towards).normalize();
    // A camera exactly above its target has no defined turn about Z.
    if (Math.abs(direction.z) > 0.999) direction.y = -1e-4;
    this.fitFrom(direction, isAnimated);
  }

  /** Look from a direction, so that the outline of what is shown fills the view. */
  private fitFrom(direction: Vector3, isAnimated: boolean): void {
    const outline = this.listOutline();
    const { center } = this.sphere;
    if (outline.length > 0) this.camera.fit(outline, center, direction, this.window(), isAnimated);
    else this.camera.fitSphere(this.sphere, direction, this.window(), isAnimated);
  }

  /** Return points of the surface of what is shown, and the corners of its beds. */
  private listOutline(): number[] {
    const { mode } = this.options;
    const pictures = mode === "before" ? [this.model] : mode === "after" ? [this.output] : [this.model, this.output];
    const points = pictures.flatMap((picture) => picture?.listPoints(OUTLINE_POINTS) ?? []);
    if (mode !== "before") points.push(...this.beds.listCorners());
    return points;
  }

  /** Return the size of a pane, and what the tools cover of it. */
  private window(): Window {
    const style = getComputedStyle(this.canvas);
    const read = (name: string): number => Number.parseFloat(style.getPropertyValue(name)) || 0;
    const [above, below] = [read("--inset-top"), read("--inset-bottom")];
    return { width: this.paneWidth(), height: this.resolution.size.y, above, below };
  }

  private paneWidth(): number {
    const isHalf = this.options.mode === "side-by-side" && this.after !== null;
    return this.resolution.size.x / (isHalf ? 2 : 1);
  }

  /** Mark a place; null removes the mark. */
  mark(place: MarkedPlace | null): void {
    this.marked = place;
    if (place) this.marker.show(this.toView(place.position_mm).toArray(), place.color);
    else this.marker.hide();
    this.drawMarks();
  }

  /** Draw the planes at which the next conversion cuts the model. */
  setCuts(cuts: readonly Cut[]): void {
    if (cuts.length === 0 && this.cuts.length === 0) return;
    this.cuts = cuts;
    this.drawMarks();
  }

  /** Move an element of the page with a place of the view. Returns a function that ends this. */
  attach(element: HTMLElement, at: Triple): () => void {
    this.invalidate();
    return this.labels.attach(element, at);
  }

  /** Keep the camera while the user drags a handle. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
    if (!isHeld && this.hasMoved) this.fit();
    this.hasMoved = false;
  }

  /** Return the position along an axis, on the line through a place, that is nearest to the pointer; null without one. */
  project(axis: Axis, at: Triple, clientX: number, clientY: number): number | null {
    const [pane] = this.panes();
    if (!pane) return null;
    const direction = new Vector3();
    direction[axis] = 1;
    const start = new Vector3(...at);
    const distance = nearestOnLine(start, direction, this.rayAt(pane, clientX, clientY).ray);
    return distance === null ? null : start[axis] + distance;
  }

  /** Mark a part of the model by its number; null marks none. */
  select(part: number | null): void {
    this.selected = part;
    this.drawSelection();
    this.invalidate();
  }

  private drawSelection(): void {
    const node = this.selected === null ? undefined : this.before?.parts[this.selected];
    this.before?.root.updateMatrixWorld(true);
    const [color, lines] = [this.color("--cut", "#e8a33d"), this.color("--text", "#1b2330")];
    this.selection.show(node?.object ?? null, this.before?.meshes ?? [], color, lines);
  }

  /** Look at one of the beds, from the present direction. */
  flyToBed(number: number): void {
    const sphere = this.beds.find(number)?.getBoundingSphere(new Sphere());
    if (sphere) this.camera.fitSphere(sphere, this.camera.direction, this.window(), true);
  }

  flyTo(place: { position_mm: Triple; size_mm?: number }): void {
    const { center, radius } = this.sphere;
    const direction = this.camera.direction;
    const position = this.toView(place.position_mm);
    const outward = position.clone().sub(center);
    // Look from the outside of the model, a little from above.
    if (outward.lengthSq() > (radius * 0.05) ** 2)
      direction
        .copy(outward.normalize())
        .setZ(direction.z + 0.35)
        .normalize();
    const picture = this.options.mode === "after" ? this.after : this.before;
    const chosen = picture ? chooseDirection(picture, position, direction, radius) : direction;
    // The place fills a third of the view, or less if it is tiny.
    const around = new Sphere(position, Math.max(1.5 * (place.size_mm ?? 0), radius * MIN_PLACE_RATIO));
    this.camera.fitSphere(around, chosen, this.window(), true);
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas.parentElement ?? this.canvas;
    if (clientWidth === 0 || clientHeight === 0) return;
    this.resolution.resize(clientWidth, clientHeight);
    this.invalidate();
  }

  invalidate(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame((time) => this.draw(time));
  }

  private draw(time: number): void {
    this.frame = 0;
    this.resolution.adapt(time);
    this.camera.advance();
    this.render();
    if (this.marker.isPulsing()) this.invalidate();
  }

  private panes(): Pane<Picture>[] {
    return listPanes(this.before, this.after, this.options, this.resolution.size.x);
  }

  private render(): void {
    const { y: height } = this.resolution.size;
    const { renderer, camera, scene } = this;
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.setScissorTest(true);
    for (const { content: picture, view, clip } of this.panes()) {
      for (const other of [this.before, this.after]) if (other) other.root.visible = other === picture;
      this.beds.root.visible = picture === this.after;
      this.selection.root.visible = picture === this.before;
      this.frameCamera(view[1]);
      this.lights.follow(camera.current, camera.target);
      this.marker.face(camera.current, height);
      const towards = camera.current.getWorldDirection(new Vector3()).negate();
      this.ground.face(towards, !this.options.bed && !(picture === this.after && this.beds.count > 0));
      renderer.setViewport(view[0], 0, view[1], height);
      renderer.setScissor(clip[0], 0, Math.max(0, clip[1]), height);
      renderer.render(scene, camera.current);
    }
    this.labels.place(camera.current, this.paneWidth(), height);
    if (camera.hasTurned()) this.onLook(camera.orientation);
  }

  private frameCamera(width: number): void {
    this.camera.frame(width, this.resolution.size.y, this.sphere, Math.hypot(...(this.options.bed ?? [])));
  }

  /** Return a PNG of the view on the background of the page. */
  takePicture(): Promise<Blob> {
    this.resolution.apply(1);
    this.render();
    return toPng(this.canvas);
  }

  /** Return a small picture of the view as a data address. */
  takeThumbnail(): string {
    this.render();
    return toThumbnail(this.canvas);
  }

  private drawMarks(): void {
    this.marks.clear();
    this.labels.clear();
    this.invalidate();
    if (this.box.isEmpty()) return;
    const accent = this.color("--accent", "#2f6fed");
    const line = this.color("--line", "#7a8699");
    const box = (this.options.mode === "after" ? this.after?.box : this.before?.box) ?? this.box;
    this.drawSelection();
    this.beds.draw(line, this.formatBed);
    if (this.options.bed) this.marks.addBed(this.options.bed, box, line);
    for (const cut of this.cuts) this.marks.addPlane(cut, box, this.color("--cut", "#e8a33d"));
    if (this.options.box) this.marks.addBox(box, accent);
    for (const measurement of this.measuring.measurements) this.marks.addMeasurement(measurement, accent);
    if (this.marked?.label) this.labels.add(this.marked.label, this.toView(this.marked.position_mm).toArray(), "place");
    if (this.measuring.picked.length > 0) this.marks.addPoints(this.measuring.picked, accent);
  }

  private paneAt(clientX: number): Pane<Picture> | undefined {
    const x = clientX - this.canvas.getBoundingClientRect().left;
    return this.panes().find(({ clip }) => x >= clip[0] && x <= clip[0] + clip[1]);
  }

  private pick(clientX: number, clientY: number): { hit: Hit; picture: Picture; pane: Pane<Picture> } | null {
    const pane = this.paneAt(clientX);
    if (!pane) return null;
    const hit = castThrough(this.rayAt(pane, clientX, clientY), pane.content, this.planes);
    return hit ? { hit, picture: pane.content, pane } : null;
  }

  private rayAt({ view }: Pane<Picture>, clientX: number, clientY: number): Raycaster {
    const bounds = this.canvas.getBoundingClientRect();
    const x = ((clientX - bounds.left - view[0]) / view[1]) * 2 - 1;
    const y = 1 - ((clientY - bounds.top) / bounds.height) * 2;
    this.frameCamera(view[1]);
    const ray = new Raycaster();
    ray.setFromCamera(new Vector2(x, y), this.camera.current);
    return ray;
  }

  private click(event: PointerEvent): void {
    const isDrag = this.pressed.distanceTo(new Vector2(event.clientX, event.clientY)) > CLICK_PIXELS;
    if (!isDrag && event.button === 0) this.pickPoint(event.clientX, event.clientY);
  }

  private pickPoint(clientX: number, clientY: number): void {
    const { tool } = this.options;
    const found = this.pick(clientX, clientY);
    if (!tool) {
      this.onSelect(found ? this.findPart(found.hit, found.picture) : null);
      return;
    }
    if (!found) return;
    const { hit, picture, pane } = found;
    if (tool === "lay-flat") {
      if (picture === this.before) this.onLay(this.carriesModel(hit, picture) ? this.layOnBed(hit) : null);
      return;
    }
    if (tool === "thickness") this.measuring.measureWall(hit, picture, this.camera.current, this.sphere.radius);
    else this.measuring.pick(tool, this.snap(hit, pane, clientX, clientY), picture);
    this.drawMarks();
  }

  /** Return the part of the model that was hit; a heat map stands for it if it has the same parts. */
  private findPart({ object }: Hit, picture: Picture): number | null {
    const isModel = picture === this.before && picture.parts.length === this.model?.parts.length;
    return isModel ? picture.findPart(object) : null;
  }

  private hover({ clientX, clientY, buttons }: PointerEvent): void {
    if (this.options.tool !== "lay-flat" || buttons !== 0) return;
    const found = this.pick(clientX, clientY);
    this.showSide(found && found.picture === this.before ? found.hit : null);
  }

  private carriesModel(hit: Hit, picture: Picture): boolean {
    return carriesModel(picture, hit.point, outwardOf(hit, this.camera.current));
  }

  private layOnBed(hit: Hit): [x: number, y: number] {
    return layOnBed(outwardOf(hit, this.camera.current), this.pose?.rotation_deg ?? [0, 0, 0]);
  }

  /** Mark the side that a click would lay on the bed. */
  private showSide(hit: Hit | null): void {
    if (hit) this.sides.show(hit, this.color("--accent", "#2f6fed"));
    else this.sides.hide();
    this.invalidate();
  }

  /** Take the nearest corner of the triangle if it is within a few pixels of the pointer. */
  private snap({ face, object, point }: Hit, { view }: Pane<Picture>, clientX: number, clientY: number): Point {
    const positions = object.geometry.getAttribute("position");
    const bounds = this.canvas.getBoundingClientRect();
    for (const index of face ? [face.a, face.b, face.c] : []) {
      const corner = new Vector3().fromBufferAttribute(positions, index).applyMatrix4(object.matrixWorld);
      const screen = corner.clone().project(this.camera.current);
      const x = bounds.left + view[0] + ((screen.x + 1) / 2) * view[1];
      const y = bounds.top + ((1 - screen.y) / 2) * bounds.height;
      if (Math.hypot(x - clientX, y - clientY) < SNAP_PIXELS) return corner.toArray();
    }
    return point.toArray();
  }

  clearMeasurements(): void {
    this.measuring.clear();
    this.drawMarks();
  }

  private focus(event: MouseEvent): void {
    const found = this.options.tool ? null : this.pick(event.clientX, event.clientY);
    if (found) this.camera.approach(found.hit.point);
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const view = VIEW_NAMES[Number(event.key) - 1];
    const turn = KEY_TURNS[event.key];
    if (turn) this.camera.turn(...turn);
    else if (event.key === "+" || event.key === "=") this.camera.zoom(1 / KEY_ZOOM_RATIO);
    else if (event.key === "-") this.camera.zoom(KEY_ZOOM_RATIO);
    else if (event.key.toLowerCase() === "f") this.fit();
    else if (view) this.setView(view);
    else if (event.key === "Enter") this.pickMiddle();
    else if (!this.onKey(event.key.toLowerCase())) return;
    event.preventDefault();
  }

  private pickMiddle(): void {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    this.pickPoint(left + width / (this.panes().length > 1 ? 4 : 2), top + height / 2);
  }
}
