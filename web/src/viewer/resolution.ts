/** Number of pixels of the view: fewer while the model moves on a slow machine, all of them at rest. */

import { Vector2, type WebGLRenderer } from "three";

import { hasSlowWebGl } from "./speed";

/** Milliseconds per frame above which the picture gets fewer pixels while it moves. */
const SLOW_FRAME_MS = 45;
/** Slow frames in a row after which the picture gets fewer pixels. */
const SLOW_FRAME_COUNT = 2;
const MIN_PIXEL_RATIO = 0.4;
/** Milliseconds without motion after which the picture gets all its pixels again. */
const REST_MS = 250;

export class Resolution {
  /** Width and height of the view in CSS pixels. */
  readonly size = new Vector2(1, 1);
  private ratio = 1;
  /** Ratio that the last motion needed; the next one starts with it. */
  private motionRatio = 1;
  /** Without a graphics card, smooth edges cost too much while the model moves: at rest it is drawn twice as large. */
  private readonly restRatio = hasSlowWebGl() ? 2 / Math.min(2, window.devicePixelRatio) : 1;
  private lastFrame = 0;
  private slowFrames = 0;
  private restTimer = 0;

  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly render: () => void,
  ) {}

  resize(width: number, height: number): void {
    this.size.set(width, height);
    this.apply(1);
  }

  /** Set the pixels per pixel of the screen. */
  apply(ratio: number): void {
    this.ratio = ratio;
    this.renderer.setPixelRatio(Math.min(2, window.devicePixelRatio) * ratio);
    this.renderer.setSize(this.size.x, this.size.y, false);
  }

  /** Forget how slow the last model was. */
  reset(): void {
    this.motionRatio = 1;
  }

  /** Prepare a frame at a time in milliseconds, and draw again when the view rests. */
  adapt(time: number): void {
    const elapsed = time - this.lastFrame;
    this.lastFrame = time;
    this.slowFrames = elapsed > SLOW_FRAME_MS && elapsed < 1000 ? this.slowFrames + 1 : 0;
    if (this.slowFrames >= SLOW_FRAME_COUNT && this.motionRatio > MIN_PIXEL_RATIO) {
      this.motionRatio = Math.max(MIN_PIXEL_RATIO, this.motionRatio * 0.7);
      this.slowFrames = 0;
    }
    if (this.ratio !== this.motionRatio) this.apply(this.motionRatio);
    clearTimeout(this.restTimer);
    if (this.ratio < this.restRatio) {
      this.restTimer = window.setTimeout(() => {
        this.apply(this.restRatio);
        this.render();
      }, REST_MS);
    }
  }

  dispose(): void {
    clearTimeout(this.restTimer);
  }
}
