/** Steps and losses of a conversion, from the capabilities of the service and the features of the file. */

import { isSet, type Settings } from "./settings";
import type { Capability, Format, Operation, Supported } from "./types";

export interface PlannedChain {
  /** Operations that run, in their order. */
  operations: Operation[];
  /** Features of the file that the result cannot keep. */
  losses: string[];
  /** Chosen parts that the plan does not allow, or that are not installed. */
  locked: Capability[];
}

/** Return the operations that run, in their order. */
export function findOperations({ options }: Settings, { operations }: Supported): Operation[] {
  return operations.filter((operation) =>
    Object.keys(operation.options.properties).some((name) => isSet(options[name])),
  );
}

/** Return whether an operation before that of an option makes several parts. */
export function isDividedBefore(option: string, settings: Settings, supported: Supported): boolean {
  const running = findOperations(settings, supported);
  const place = running.findIndex(({ options }) => option in options.properties);
  return running.slice(0, Math.max(place, 0)).some(({ stage }) => stage === "divide");
}

/** Return the chain of a conversion. `features` are those of the file, as its inspection lists them. */
export function planChain(settings: Settings, supported: Supported, features: readonly string[]): PlannedChain {
  const operations = findOperations(settings, supported);
  const format = supported.formats[settings.target];
  let kept = [...features];
  const losses: string[] = [];
  for (const { drops, transfers } of operations) {
    losses.push(...kept.filter((feature) => drops.includes(feature) && !transfers.includes(feature)));
    kept = kept.filter((feature) => !drops.includes(feature));
  }
  if (format) losses.push(...listUnwritten(kept, format, settings));
  return { operations, losses, locked: operations.filter((each) => !each.allowed || !each.available) };
}

/** Return the features that the writer of a format does not keep. */
function listUnwritten(features: string[], format: Format, { options }: Settings): string[] {
  const keeps = (feature: string): boolean => {
    const support = format.features[feature];
    return support !== undefined && (support.write || support.options.some((name) => isSet(options[name])));
  };
  const colors = options["texture_colors"];
  const hasOnlyColors = keeps("colors") && !keeps("materials") && !keeps("textures");
  // Textures become colors of vertices or faces.
  const areBaked = keeps("colors") && (colors === "vertex" || colors === "face" || (!isSet(colors) && hasOnlyColors));
  return features.filter((feature) => !keeps(feature) && !(feature === "textures" && areBaked));
}

/** Formats for printing, in the order in which they are offered. */
const PRINT_FORMATS = ["3mf", "stl"];
/** Features that only some formats keep. */
const APPEARANCE = ["colors", "materials", "textures"];

/** Return whether a file with these features states how it looks. */
export function isColored(features: readonly string[]): boolean {
  return APPEARANCE.some((feature) => features.includes(feature));
}

/** Return the target that is chosen at first: 3MF, which keeps the most for printing, also for files of this format. */
export function chooseTarget(writable: readonly string[]): string | undefined {
  return [...PRINT_FORMATS, ...writable].find((id) => writable.includes(id));
}
