/** Tree of parts as a list: each part follows its group, one step deeper. */

/** Return for each part whether it is shown when one of them is isolated: itself, its groups and its own parts. */
export function listIsolated(depths: readonly number[], chosen: number): boolean[] {
  const depth = depths[chosen] ?? 0;
  const next = depths.findIndex((each, index) => index > chosen && each <= depth);
  const end = next < 0 ? depths.length : next;
  let above = depth;
  const shown = depths.map((_, index) => index >= chosen && index < end);
  for (let index = chosen - 1; index >= 0; index--) {
    const each = depths[index] ?? 0;
    if (each >= above) continue;
    shown[index] = true;
    above = each;
  }
  return shown;
}
