// A search as an address has it, and as a form has it. Pure.

/** Parameters that the server knows; everything else in an address is not sent. */
const KNOWN = ['service', 'operation', 'attr', 'minDuration', 'maxDuration', 'start', 'end', 'lookback', 'errors', 'kind', 'namespace', 'name', 'q', 'limit'];

/** What is sent to the server. */
export function toServer(params) {
  const sent = new URLSearchParams();
  for (const [name, value] of params) if (KNOWN.includes(name) && value !== '') sent.append(name, value);
  return sent;
}

/** The attributes of a search as one line: `http.method=GET "user agent=a b"`. */
export function attributesToText(pairs) {
  return pairs.map((pair) => (/[\s"]/.test(pair) ? `"${pair.replace(/(["\\])/g, '\\$1')}"` : pair)).join(' ');
}

/** The reverse: `{pairs, problem}`. A space parts two pairs; within quotes it does not, before or behind the `=`. */
export function textToAttributes(text) {
  const pairs = [];
  for (const [part] of text.matchAll(/(?:"(?:\\.|[^"\\])*"?|[^\s"])+/g)) {
    const pair = part.replace(/"((?:\\.|[^"\\])*)"?/g, (_, quoted) => quoted.replace(/\\(.)/g, '$1'));
    if (!/^[^=]+=/.test(pair)) return { pairs, problem: `“${pair}” has no value: write key=value` };
    pairs.push(pair);
  }
  return { pairs, problem: null };
}

/**
 * An attribute as a search for the same value has it, `key=value`, or null where none would find it: values that are absent or no number,
 * and what the server could not read as text and shows with U+FFFD.
 */
export function sameValue({ key, value, type, cut }) {
  const text = typeof value === 'string' ? value : written(value);
  const number = type !== 'double' || typeof value === 'number';
  if (cut || !number || !text || value === null || key !== key.trim() || !/^[^=\ufffd]+$/.test(key) || text.includes('\ufffd')) return null;
  return `${key}=${/^[\s\u0085]|[\s\u0085]$|^".*"$/s.test(text) ? `"${text}"` : text}`;
}

/** A value as the search compares it, or null where this cannot be known: within others, strings may stand for numbers. */
function written(value) {
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'string') return /^(NaN|-?inf|-?\d{16,})$/.test(value) ? null : escaped(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const list = Array.isArray(value);
  const names = list ? [] : Object.keys(value).sort();
  const inner = (list ? value : names.map((name) => value[name])).map(written);
  if (inner.includes(null)) return null;
  return list ? `[${inner}]` : `{${names.map((name, at) => `${escaped(name)}:${inner[at]}`)}}`;
}

/** As Go writes strings in JSON. */
const escaped = (text) => JSON.stringify(text).replace(/[<>&\u2028\u2029]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** How results can be ordered. */
export const SORTS = {
  newest: ['Newest first', (a, b) => compare(b.start, a.start)],
  longest: ['Longest first', (a, b) => b.duration - a.duration],
  spans: ['Most spans', (a, b) => b.spans - a.spans],
  errors: ['Most errors', (a, b) => b.errors - a.errors || compare(b.start, a.start)],
};

/** Times are strings of nanoseconds: the longer is the later. */
function compare(a, b) {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** Takes traces that are new or grew into a list of the newest, and gives how many are new. */
export function upsert(traces, arrived, limit) {
  const byId = new Map(traces.map((trace) => [trace.traceId, trace]));
  const fresh = arrived.filter((trace) => !byId.has(trace.traceId)).length;
  for (const trace of arrived) byId.set(trace.traceId, trace);
  const all = [...byId.values()].sort(SORTS.newest[1]).slice(0, limit);
  return { traces: all, fresh };
}

/** The trace id in a text, or null. */
export function traceIdIn(text) {
  const found = /(?:^|[^0-9a-f])([0-9a-f]{32})(?:$|[^0-9a-f])/i.exec(text) ?? /^\s*([0-9a-f]{16})\s*$/i.exec(text);
  return found ? found[1].toLowerCase() : null;
}
