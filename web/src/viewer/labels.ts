/** Texts beside places of the view, as HTML over the canvas. */

import { Vector3, type Camera } from "three";

import type { Point } from "./measure";

export class Labels {
  private readonly root = document.createElement("div");
  /** Elements of the page that follow a place. */
  private readonly followers = new Map<HTMLElement, Point>();

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

  /** Move an element of the page with a place. Returns a function that ends this. */
  attach(element: HTMLElement, at: Point): () => void {
    this.followers.set(element, at);
    return () => this.followers.delete(element);
  }

  clear(): void {
    this.root.replaceChildren();
  }

  /** Move the texts to where a camera sees their places, in a pane of this size in pixels. */
  place(camera: Camera, width: number, height: number): void {
    const move = (element: HTMLElement, [x, y, z]: Point): void => {
      const point = new Vector3(x, y, z).project(camera);
      element.hidden = point.z > 1;
      element.style.transform = `translate(-50%, -50%) translate(${((point.x + 1) / 2) * width}px, ${((1 - point.y) / 2) * height}px)`;
    };
    for (const label of this.root.children as HTMLCollectionOf<HTMLElement>) {
      const [x = 0, y = 0, z = 0] = (label.dataset["at"] ?? "").split(" ").map(Number);
      move(label, [x, y, z]);
    }
    for (const [element, at] of this.followers) move(element, at);
  }

  dispose(): void {
    this.root.remove();
  }
}
