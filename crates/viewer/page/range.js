// The stretch of a trace that is shown, `[from, to]` in nanoseconds from its start. Pure.

/** Nothing below is worth drawing wider than the window. */
const LEAST = 100;

/** The nearest stretch that is within the trace and not too short. */
export function clamp([from, to], length) {
  const size = Math.min(Math.max(to - from, Math.min(LEAST, length)), length);
  const begin = Math.min(Math.max(from, 0), length - size);
  return [begin, begin + size];
}

/** Closer or farther, around a place within the stretch (0 is its start, 1 its end). */
export function zoom([from, to], factor, around, length) {
  const size = (to - from) * factor;
  const center = from + (to - from) * around;
  return clamp([center - size * around, center + size * (1 - around)], length);
}

/** To the side, by a share of the stretch. */
export function pan([from, to], share, length) {
  const by = (to - from) * share;
  const moved = Math.min(Math.max(by, -from), length - to);
  return [from + moved, to + moved];
}

/** Whether everything is shown. */
export const isWhole = ([from, to], length) => from <= 0 && to >= length;

/** From a place in time to one on the axis, in percent. */
export const place = ([from, to], at) => ((at - from) / (to - from)) * 100;
