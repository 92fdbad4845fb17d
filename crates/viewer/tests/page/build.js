// Traces for tests, in the words of the server.

let serial = 0;

/** A span, in milliseconds from the start of the trace: `span('name', 0, 10, {parent})`. */
export function span(name, start, length, props = {}) {
  const { parent, service = 0, ...rest } = props;
  serial += 1;
  const id = rest.id ?? serial.toString(16).padStart(16, '0');
  return { id, parent: parent?.id ?? parent, name, kind: 'internal', start: String(BEGIN + BigInt(Math.round(start * 1e6))), duration: length * 1e6, resource: service, status: 'unset', attributes: [], events: [], links: [], ...rest };
}

export const BEGIN = 1_794_833_524_042_039_170n;

/** A trace of these spans, as the server orders them. */
export function trace(spans, props = {}) {
  const sorted = [...spans].sort((a, b) => (BigInt(a.start) < BigInt(b.start) ? -1 : BigInt(a.start) > BigInt(b.start) ? 1 : 0));
  return { traceId: 'a'.repeat(32), start: sorted[0]?.start ?? String(BEGIN), duration: 0, services: [{ name: 'shop', attributes: [] }, { name: 'stock', attributes: [] }], spans: sorted, linkedFrom: [], warnings: [], ...props };
}

/** An operator's trace: a request, and a reconcile 100 ms later whose child is ready after another 800 ms. */
export function operator() {
  const request = span('POST', 0, 10);
  const stamp = span('stamp Head', 2, 3, { parent: request });
  const converge = span('converge Head', 5, 1000, { parent: stamp });
  const first = span('reconcile Head', 110, 40, { parent: stamp });
  const apply = span('apply ChildA', 120, 10, { parent: first });
  const child = span('reconcile ChildA', 950, 20, { parent: apply });
  const last = span('reconcile Head', 980, 25, { parent: stamp });
  return trace([request, stamp, converge, first, apply, child, last]);
}

/** Times of stretches in milliseconds. */
export const millis = (stretches) => stretches.map(([from, to]) => [from / 1e6, to / 1e6]);

/** A clock that goes when it is told to, by `tick(milliseconds)`, until it is put back. */
export function clock() {
  const { setTimeout, clearTimeout } = globalThis;
  const waiting = new Map();
  let [now, last] = [0, 0];
  globalThis.setTimeout = (call, after) => (waiting.set((last += 1), { call, at: now + after }), last);
  globalThis.clearTimeout = (id) => waiting.delete(id);
  const tick = (millis) => {
    now += millis;
    [...waiting].filter(([, { at }]) => at <= now).forEach(([id, { call }]) => waiting.delete(id) && call());
  };
  return { tick, putBack: () => Object.assign(globalThis, { setTimeout, clearTimeout }) };
}

/** Whatever waits for an answer that is there has gone on. */
export const settled = () => new Promise((done) => setImmediate(done));
