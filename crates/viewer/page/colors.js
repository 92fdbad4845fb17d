// Each service has a colour, the same on every view for as long as the page is open.
//
// The style sheet has the colours, for light and dark; a class chooses one. A name begins at a place of its own, so that a service
// has mostly the same colour tomorrow, and moves on while there is a colour that nobody has.

const COLORS = 12;
const taken = new Map();
const uses = new Array(COLORS).fill(0);

function hash(text) {
  let value = 2166136261;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 16777619);
  return value >>> 0;
}

/** The number of a service's colour. */
export function colorOf(service) {
  const known = taken.get(service);
  if (known !== undefined) return known;
  const first = hash(service) % COLORS;
  const least = Math.min(...uses);
  let color = first;
  while (uses[color] > least) color = (color + 1) % COLORS;
  uses[color] += 1;
  taken.set(service, color);
  return color;
}

/** The class that gives an element the service's colour as `--svc`. */
export const colorClass = (service) => `svc svc-${colorOf(service)}`;
