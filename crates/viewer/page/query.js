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
