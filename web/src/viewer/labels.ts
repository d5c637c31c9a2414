/** Texts beside places of the view, as HTML over the canvas. */

import { Vector3, type Camera } from "three";

import type { Point } from "./measure";

export class Labels {
  private readonly root = document.createElement("div");

  constructor(container: HTMLElement) {
    this.root.className = "labels";
    this.root.ariaHidden = "true";
    container.append(this.root);
  }

  add(text: string, at: Point, kind: string): void {
    const label = document.createElement("span");
    label.className = `label label-${kind}`;
    label.textContent = text;
    label.dataset["at"] = at.join(" ");
    this.root.append(label);
  }

  clear(): void {
    this.root.replaceChildren();
  }

  /** Move the texts to where a camera sees their places, in a pane of this size in pixels. */
  place(camera: Camera, width: number, height: number): void {
    const point = new Vector3();
    for (const label of this.root.children as HTMLCollectionOf<HTMLElement>) {
      const [x = 0, y = 0, z = 0] = (label.dataset["at"] ?? "").split(" ").map(Number);
      point.set(x, y, z).project(camera);
      label.hidden = point.z > 1;
      label.style.transform = `translate(-50%, -50%) translate(${((point.x + 1) / 2) * width}px, ${((1 - point.y) / 2) * height}px)`;
    }
  }

  dispose(): void {
    this.root.remove();
  }
}
