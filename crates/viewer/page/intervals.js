// Stretches of time, as pairs of numbers.

/** The same stretches without overlaps, in order. What only touches is one stretch. */
export function merge(intervals) {
  const sorted = intervals.sort((a, b) => a[0] - b[0]);
  const merged = [];
  for (const [from, to] of sorted) {
    const last = merged[merged.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** What merged stretches leave of the time from one moment to another. */
export function gapsOf(merged, from, to) {
  const gaps = [];
  let at = from;
  for (const [begin, end] of merged) {
    if (end <= at) continue;
    if (begin >= to) break;
    if (begin > at) gaps.push([at, begin]);
    at = end;
  }
  if (at < to) gaps.push([at, to]);
  return gaps;
}
