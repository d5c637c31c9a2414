/** Handles in the 3D view: the height of the model, and the planes at which it is cut. */

import { useEffect, useRef } from "preact/hooks";

import { AXES, type Spans } from "../bed-cuts";
import { moveTo, toPosition, writePlanes } from "../cut-planes";
import { formatNumber, t } from "../i18n";
import { isPoseKnown } from "../pose";
import { setOption, settings } from "../state/form";
import { fields } from "../state/service";
import type { Triple } from "../types";
import type { Axis } from "../viewer/options";
import { BED_CUTS, canRemoveCut, cutGroups, describeCut, removeBedCut, spans, type CutGroup } from "./cuts";
import { isOffered, posed, viewer, viewOptions, type Posed } from "./view-state";

/** Millimeters, or percent, by which a key moves a handle. */
const KEY_STEPS: Partial<Record<string, number>> = {
  ArrowUp: 1,
  ArrowRight: 1,
  ArrowDown: -1,
  ArrowLeft: -1,
  PageUp: 10,
  PageDown: -10,
};
/** Digits of a height that is dragged. */
const HEIGHT_DIGITS = 4;

export function Handles() {
  const shown = posed.value;
  const { mode, box, tool } = viewOptions.value;
  const { options } = settings.value;
  if (!shown || mode !== "before" || tool || !isPoseKnown(options)) return null;
  const hasHeight = isOffered("target_height_mm") && (box || options["target_height_mm"] !== undefined);
  const extents = spans.value;
  return (
    <>
      {hasHeight && <HeightHandle shown={shown} />}
      {extents &&
        cutGroups.value.flatMap((group) =>
          group.planes.map((_, index) => (
            <CutHandle key={`${group.option} ${index}`} group={group} index={index} extents={extents} />
          )),
        )}
    </>
  );
}

function HeightHandle({ shown: { min, max } }: { shown: Posed }) {
  const { minimum = 0, maximum = Infinity } = fields.value["target_height_mm"] ?? {};
  const height = max[2] - min[2];
  const change = (value: number): void => {
    const bounded = Math.min(maximum, Math.max(minimum, value));
    setOption("target_height_mm", String(Number(bounded.toPrecision(HEIGHT_DIGITS))));
  };
  return (
    <Handle
      label={t("heightHandle")}
      axis="z"
      at={[(min[0] + max[0]) / 2, (min[1] + max[1]) / 2, max[2]]}
      value={height}
      bounds={[0, Math.max(height, Math.min(maximum, 1000))]}
      text={`${formatNumber(height, 2)} mm`}
      onDrag={(z) => z > min[2] && change(z - min[2])}
      onStep={(step) => change(height + step)}
    />
  );
}

function CutHandle({ group, index, extents }: { group: CutGroup; index: number; extents: Spans }) {
  const { option, planes, isPlanned, warned } = group;
  const plane = planes[index];
  const axis = AXES.indexOf(plane?.axis ?? "z");
  const span = extents[axis];
  if (!plane || !span) return null;
  const isWarned = warned.has(plane);
  const at = extents.map(({ min }, each) => (each === axis ? toPosition(plane, span) : min)) as Triple;
  const write = (changed: typeof plane): void =>
    setOption(option, writePlanes(planes.map((each, place) => (place === index ? changed : each))));
  const move = (position: number): void => write(moveTo(plane, position, span));
  const step = plane.isPercent ? (span.max - span.min) / 100 : 1;
  const state = isWarned ? t("cutTooLarge") : isPlanned ? t("cutPlanned") : "";
  return (
    <Handle
      label={t("cutHandle", { axis: plane.axis.toUpperCase() })}
      axis={plane.axis}
      at={at}
      value={plane.value}
      bounds={plane.isPercent ? [0, 100] : [span.min + span.offset, span.max + span.offset]}
      text={[describeCut(plane), state].filter(Boolean).join(" · ")}
      isWarned={isWarned}
      onDrag={move}
      onStep={(count) => move(toPosition(plane, span) + count * step)}
      onRemove={option === BED_CUTS && canRemoveCut(group) ? () => removeBedCut(group, index) : undefined}
    />
  );
}

interface HandleProps {
  label: string;
  axis: Axis;
  /** Where the handle is in the view. */
  at: Triple;
  value: number;
  bounds: [lower: number, upper: number];
  text: string;
  /** Called with the position along the axis. */
  onDrag: (position: number) => unknown;
  onStep: (count: number) => void;
  isWarned?: boolean;
  /** Called for the key Delete. */
  onRemove?: (() => void) | undefined;
}

/** A handle that is dragged along an axis, or moved with the arrow keys. */
function Handle({ label, axis, at, value, bounds, text, onDrag, onStep, isWarned, onRemove }: HandleProps) {
  const element = useRef<HTMLDivElement>(null);
  const view = viewer.value;
  useEffect(() => (element.current && view ? view.attach(element.current, at) : undefined), [view, ...at]);
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Delete" && onRemove) {
      // The last handle disappears, with the focus.
      if (!element.current?.nextElementSibling)
        (element.current?.previousElementSibling as HTMLElement | null)?.focus();
      onRemove();
    }
    const step = KEY_STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    onStep(step);
  };
  const move = ({ clientX, clientY, buttons }: PointerEvent): void => {
    const position = buttons === 1 ? view?.project(axis, at, clientX, clientY) : null;
    if (position !== null && position !== undefined) onDrag(position);
  };
  return (
    <div
      ref={element}
      class={`handle ${isWarned ? "warned" : ""}`}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-orientation="vertical"
      aria-valuemin={bounds[0]}
      aria-valuemax={bounds[1]}
      aria-valuenow={value}
      aria-valuetext={text}
      aria-keyshortcuts={onRemove && "Delete"}
      onKeyDown={press}
      onPointerDown={({ currentTarget, pointerId }) => {
        currentTarget.setPointerCapture(pointerId);
        view?.hold(true);
      }}
      onPointerMove={move}
      onLostPointerCapture={() => view?.hold(false)}
    >
      <span aria-hidden="true">{text}</span>
    </div>
  );
}
