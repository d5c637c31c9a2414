/** Interactive view of one model, or of a model before and after a conversion. */

import { Box3, Plane, Scene, Sphere, Vector3, WebGLRenderer, Matrix4 } from "three";

import type { Bed } from "../beds";
import type { Pose } from "../pose";
import type { Triple } from "../types";
import { ViewCamera, type Window } from "./camera";
import { nearestOnLine } from "./drag";
import { Ground } from "./ground";
import { Interaction } from "./interaction";
import { Labels } from "./labels";
import { Lights } from "./lights";
import { Marker } from "./marker";
import { listBedCorners, Marks, type Cut } from "./marks";
import { Measuring } from "./measuring";
import {
  INITIAL_OPTIONS,
  VIEWS,
  type Axis,
  type MarkedPlace,
  type Mode,
  type ViewName,
  type ViewOptions,
} from "./options";
import { listPanes, type Pane } from "./panes";
import type { Picture } from "./picture";
import type { Posing } from "./posing";
import { Resolution } from "./resolution";
import { toPlane } from "./section";
import { Selection } from "./selection";
import { Shown } from "./shown";
import { Sides } from "./sides";
import { toPng, toThumbnail } from "./snapshot";
import { hasSlowWebGl } from "./speed";
import type { Orientation } from "./view-cube";

export class Viewer {
  private readonly renderer: WebGLRenderer;
  private readonly resolution: Resolution;
  private readonly scene = new Scene();
  readonly camera: ViewCamera;
  readonly shown: Shown;
  private readonly interaction: Interaction;
  private readonly lights: Lights;
  private readonly ground = new Ground();
  private readonly marker = new Marker();
  private readonly labels: Labels;
  readonly marks: Marks;
  readonly measuring = new Measuring();
  private marked: MarkedPlace | null = null;
  readonly sides: Sides;
  private readonly selection = new Selection();
  /** Number of the selected part of the model. */
  private selected: number | null = null;
  private cuts: readonly Cut[] = [];
  /** Whether the user drags a handle, and whether the model has moved since; it is fitted afterwards. */
  private isHeld = false;
  private hasMoved = false;
  planes: Plane[] = [];
  options = INITIAL_OPTIONS;
  private frame = 0;
  private readonly observer: ResizeObserver;
  formatBed: (number: number) => string = String;
  /** Called with the angles about X and Y that lay the chosen side on the bed. */
  onLay: (angles: [x: number, y: number] | null) => void = () => undefined;
  /** Called with the box of the model in the view, and how it got there. */
  onPose: (box: Box3, posing: Posing) => void = () => undefined;
  /** Called with the number of the clicked part of the model; null beside it. */
  onSelect: (part: number | null) => void = () => undefined;
  /** Called for keys that the view does not use. Returns whether they have an effect. */
  onKey: (key: string) => boolean = () => false;
  /** Called when the camera has turned. */
  onLook: (orientation: Orientation) => void = () => undefined;

  /** Throws an Error without WebGL 2. */
  constructor(
    readonly canvas: HTMLCanvasElement,
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
    this.shown = new Shown(this.scene);
    this.scene.add(this.marks.root, this.shown.beds.root, this.ground.root, this.marker.root, this.selection.root);
    this.camera = new ViewCamera(canvas, () => this.invalidate());
    this.interaction = new Interaction(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(container);
    this.resize();
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.resolution.dispose();
    this.observer.disconnect();
    this.interaction.dispose();
    this.shown.remove();
    this.shown.beds.clear();
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
   * Show a model, and its conversion if there is one. The camera stays if only the conversion or a stand-in changes.
   * @param standIns Pictures that stand for those of the model and of its conversion: heat maps, a draft.
   * @param beds Beds on which the objects of the conversion stand.
   */
  setPictures(model: Picture | null, output: Picture | null, standIns: (Picture | null)[], beds: Bed[]): void {
    const isNew = model !== this.shown.model;
    if (!this.shown.replace(model, output, standIns, beds)) return;
    this.resolution.reset();
    this.applyPose();
    this.enclose();
    if (isNew) {
      this.measuring.clear();
      this.setView("iso", false);
    }
    this.setOptions(this.options);
  }

  /** Show the model as the settings turn and scale it; null: as it is. */
  setPose(pose: Pose | null): void {
    if (JSON.stringify(pose) === JSON.stringify(this.shown.pose)) return;
    this.shown.pose = pose;
    if (!this.shown.model) return;
    this.applyPose();
    this.measuring.clear();
    this.enclose();
    this.setOptions(this.options);
    this.mark(this.marked);
    this.hasMoved = this.isHeld;
    if (!this.isHeld) this.fit();
  }

  private applyPose(): void {
    const posing = this.shown.applyPose();
    this.sides.hide();
    this.onPose(this.shown.model?.box ?? new Box3(), posing);
  }

  /** Measure what the view shows, and put the ground below it. */
  private enclose(): void {
    this.shown.enclose();
    const { mode, model, output } = this.shown;
    const picture = mode === "after" ? output : model;
    if (!picture) return;
    // The grid stays while a model and its conversion at the same place take turns.
    const extent = picture === output && picture.isInPlace ? (model ?? picture) : picture;
    this.ground.place(this.renderer, picture.root, picture.box, extent.box, this.color("--line", "#7a8699"));
  }

  /** Return a color of the theme. */
  color(name: string, fallback: string): string {
    return getComputedStyle(this.canvas).getPropertyValue(name).trim() || fallback;
  }

  setOptions(options: ViewOptions): void {
    const isOtherBed = options.bed !== this.options.bed;
    if (options.mode !== this.options.mode) this.changeMode(options.mode);
    if (options.isOrthographic !== this.options.isOrthographic) this.camera.setOrthographic(options.isOrthographic);
    if (options.tool !== this.options.tool) this.measuring.picked = [];
    if (options.tool !== "lay-flat") this.sides.hide();
    this.options = options;
    this.planes = options.section && !this.shown.box.isEmpty() ? [toPlane(options.section, this.shown.box)] : [];
    const display = {
      wireframe: options.wireframe,
      textures: options.textures,
      defects: options.defects,
      changes: options.changes,
      clay: this.color("--clay", "#b9c3d3"),
      cut: this.color("--cut", "#e8a33d"),
      edge: this.color("--edge", "#3a4657"),
    };
    this.shown.before?.apply(display, this.planes);
    this.shown.after?.apply(display, this.planes);
    this.drawMarks();
    if (isOtherBed) this.fitFrom(this.camera.direction, true);
  }

  private changeMode(mode: Mode): void {
    const last = this.options.mode;
    this.options = { ...this.options, mode };
    this.shown.mode = mode;
    if ((mode === "after") !== (last === "after")) {
      this.shown.align(mode !== "after");
      this.changePlace(mode !== "after");
    }
    this.enclose();
    // Zoom out when the panes get half as wide.
    if ((mode === "side-by-side") !== (last === "side-by-side")) this.fit();
  }

  /** Change between the place of the model and that of its conversion; the model keeps its place in the window. */
  private changePlace(isAligned: boolean): void {
    const motion: Matrix4 | undefined = this.shown.output?.motion;
    if (motion) this.camera.follow(isAligned ? motion.clone().invert() : motion);
  }

  fit(): void {
    this.fitFrom(this.camera.direction, true);
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

  /** Look from a direction, so that the outline of what is shown fills the view, with the bed below it. */
  private fitFrom(direction: Vector3, isAnimated: boolean): void {
    const outline = this.shown.listOutline();
    if (this.options.bed && outline.length > 0) outline.push(...listBedCorners(this.options.bed, this.boxOnBed()));
    const { center } = this.shown.sphere;
    if (outline.length > 0) this.camera.fit(outline, center, direction, this.window(), isAnimated);
    else this.camera.fitSphere(this.shown.sphere, direction, this.window(), isAnimated);
  }

  /** Return the size of a pane, and what the tools cover of it. */
  private window(): Window {
    const style = getComputedStyle(this.canvas);
    const read = (name: string): number => Number.parseFloat(style.getPropertyValue(name)) || 0;
    const [above, below] = [read("--inset-top"), read("--inset-bottom")];
    return { width: this.paneWidth(), height: this.resolution.size.y, above, below };
  }

  private paneWidth(): number {
    const isHalf = this.options.mode === "side-by-side" && this.shown.after !== null;
    return this.resolution.size.x / (isHalf ? 2 : 1);
  }

  /** Mark a place; null removes the mark. */
  mark(place: MarkedPlace | null): void {
    this.marked = place;
    if (place) this.marker.show(this.shown.toView(place.position_mm).toArray(), place.color);
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
    const distance = nearestOnLine(start, direction, this.interaction.pointer.rayAt(pane, clientX, clientY).ray);
    return distance === null ? null : start[axis] + distance;
  }

  /** Mark a part of the model by its number; null marks none. */
  select(part: number | null): void {
    this.selected = part;
    this.drawSelection();
    this.invalidate();
  }

  /** Draw again what depends on the meshes of the model, such as its shadow, after they have changed. */
  redraw(): void {
    this.enclose();
    this.drawSelection();
    this.invalidate();
  }

  private drawSelection(): void {
    const node = this.selected === null ? undefined : this.shown.before?.parts[this.selected];
    this.shown.before?.root.updateMatrixWorld(true);
    const [color, lines] = [this.color("--accent", "#2f6fed"), this.color("--text", "#1b2330")];
    this.selection.show(node?.object ?? null, this.shown.before?.meshes ?? [], color, lines);
  }

  /** Look at one of the beds, from the present direction. */
  flyToBed(number: number): void {
    const sphere = this.shown.beds.find(number)?.getBoundingSphere(new Sphere());
    if (sphere) this.camera.fitSphere(sphere, this.camera.direction, this.window(), true);
  }

  flyTo(place: { position_mm: Triple; size_mm?: number }): void {
    const { around, direction } = this.shown.aimAt(place, this.camera.direction);
    this.camera.fitSphere(around, direction, this.window(), true);
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas.parentElement ?? this.canvas;
    if (clientWidth === 0 || clientHeight === 0) return;
    this.resolution.resize(clientWidth, clientHeight);
    // The field of view is that of the height: without this, a view that grows taller cuts the sides of the model off.
    if (this.camera.isFitted()) this.fitFrom(this.camera.aim, false);
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

  panes(): Pane<Picture>[] {
    return listPanes(this.shown.before, this.shown.after, this.options, this.resolution.size.x);
  }

  private render(): void {
    const { y: height } = this.resolution.size;
    const { renderer, camera, scene } = this;
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.setScissorTest(true);
    for (const { content: picture, view, clip } of this.panes()) {
      for (const other of [this.shown.before, this.shown.after]) if (other) other.root.visible = other === picture;
      this.shown.beds.root.visible = picture === this.shown.after;
      this.selection.root.visible = picture === this.shown.before;
      this.frameCamera(view[1]);
      this.lights.follow(camera.current, camera.target);
      this.marker.face(camera.current, height);
      const towards = camera.current.getWorldDirection(new Vector3()).negate();
      this.ground.face(towards, !this.options.bed && !(picture === this.shown.after && this.shown.beds.count > 0));
      renderer.setViewport(view[0], 0, view[1], height);
      renderer.setScissor(clip[0], 0, Math.max(0, clip[1]), height);
      renderer.render(scene, camera.current);
    }
    this.labels.place(camera.current, this.paneWidth(), height);
    if (camera.hasTurned()) this.onLook(camera.orientation);
  }

  frameCamera(width: number): void {
    this.camera.frame(width, this.resolution.size.y, this.shown.sphere, Math.hypot(...(this.options.bed ?? [])));
  }

  /** Return a PNG of the view on the background of the page. */
  takePicture(): Promise<Blob> {
    this.resolution.apply(1);
    this.render();
    return toPng(this.canvas);
  }

  /** Return a small picture of the conversion, as the view shows it, as a data address. */
  takeThumbnail(): string {
    const { options } = this;
    this.options = { ...options, mode: "after" };
    this.render();
    const thumbnail = toThumbnail(this.canvas);
    this.options = options;
    this.render();
    return thumbnail;
  }

  drawMarks(): void {
    this.marks.clear();
    this.labels.clear();
    this.invalidate();
    if (this.shown.box.isEmpty()) return;
    const accent = this.color("--accent", "#2f6fed");
    const line = this.color("--line", "#7a8699");
    const box = this.boxOnBed();
    this.drawSelection();
    this.shown.beds.draw(line, this.formatBed);
    if (this.options.bed) this.marks.addBed(this.options.bed, box, line);
    for (const cut of this.cuts) this.marks.addPlane(cut, box, this.color("--cut", "#e8a33d"));
    if (this.options.box) this.marks.addBox(box, accent);
    for (const measurement of this.measuring.measurements) this.marks.addMeasurement(measurement, accent);
    if (this.marked?.label)
      this.labels.add(this.marked.label, this.shown.toView(this.marked.position_mm).toArray(), "place");
    if (this.measuring.picked.length > 0) this.marks.addPoints(this.measuring.picked, accent);
  }

  /** Return the box of the picture that stands on the bed. */
  private boxOnBed(): Box3 {
    return (this.options.mode === "after" ? this.shown.after?.box : this.shown.before?.box) ?? this.shown.box;
  }

  clearMeasurements(): void {
    this.measuring.clear();
    this.drawMarks();
  }
}
