// How figures and texts are written. Pure: nothing here knows the page.

const UNITS = [
  ['y', 31_557_600e9],
  ['d', 86_400e9],
  ['h', 3_600e9],
  ['m', 60e9],
  ['s', 1e9],
  ['ms', 1e6],
  ['µs', 1e3],
  ['ns', 1],
];

/** A duration of nanoseconds with three significant digits: `1.25 s`, `340 µs`, `2 m 5 s`. */
export function duration(ns) {
  if (!Number.isFinite(ns)) return '–';
  const sign = ns < 0 ? '−' : '';
  const size = Math.abs(ns);
  if (size === 0) return '0';
  const at = UNITS.findIndex(([, unit]) => size >= unit * 0.9995);
  const [name, unit] = UNITS[at < 0 ? UNITS.length - 1 : at];
  if (unit <= 1e9) return `${sign}${digits(size / unit)} ${name}`;
  const [next, nextUnit] = UNITS[at + 1];
  let [big, small] = [Math.floor(size / unit), Math.round((size % unit) / nextUnit)];
  if (small * nextUnit >= unit) [big, small] = [big + 1, 0];
  return `${sign}${big} ${name}${small ? ` ${small} ${next}` : ''}`;
}

function digits(value) {
  const shown = value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
  return shown.includes('.') ? shown.replace(/\.?0+$/, '') : shown;
}

/** A duration as the search takes it: `1.5s`. */
export function goDuration(ns) {
  const [name, unit] = UNITS.slice(4).find(([, unit]) => ns >= unit) ?? ['ns', 1];
  return `${Number((ns / unit).toFixed(3))}${name.replace('µ', 'u')}`;
}

/** Milliseconds since the epoch of a string of nanoseconds. */
export function toMillis(ns) {
  try {
    return Number(BigInt(ns) / 1000n) / 1000;
  } catch {
    return NaN;
  }
}

/** The time of day with milliseconds, in the reader's time zone: `14:03:07.120`. */
export function clock(ns, withMillis = true) {
  const date = new Date(toMillis(ns));
  if (Number.isNaN(date.getTime())) return String(ns);
  const two = (value) => String(value).padStart(2, '0');
  const millis = withMillis ? `.${String(date.getMilliseconds()).padStart(3, '0')}` : '';
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}${millis}`;
}

/** Day and time of day: `2026-11-16 14:03:07.120`. */
export function dateTime(ns) {
  const date = new Date(toMillis(ns));
  if (Number.isNaN(date.getTime())) return String(ns);
  const two = (value) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(ns)}`;
}

/** How long ago something was: `now`, `12 s ago`, `in 3 h`. */
export function ago(ns, now = Date.now()) {
  const seconds = (now - toMillis(ns)) / 1000;
  if (!Number.isFinite(seconds)) return '–';
  const size = Math.abs(seconds);
  const [value, unit] =
    size < 1 ? [0, ''] : size < 60 ? [size, 's'] : size < 3600 ? [size / 60, 'min'] : size < 86_400 ? [size / 3600, 'h'] : [size / 86_400, 'd'];
  if (!unit) return 'now';
  const text = `${Math.floor(value)} ${unit}`;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

/** Bytes in binary units: `1.5 MiB`. */
export function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, at] = [count, 0];
  while (value >= 1000 && at < units.length - 1) [value, at] = [value / 1024, at + 1];
  return `${at ? digits(value) : value} ${units[at]}`;
}

/** A count with thin groups: `12 345`. */
export function count(value) {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ' ');
}

/** A rate: `1.2 k/s`. */
export function rate(value) {
  if (!Number.isFinite(value)) return '–';
  if (value >= 1e6) return `${digits(value / 1e6)} M/s`;
  if (value >= 1e3) return `${digits(value / 1e3)} k/s`;
  return `${digits(value)}/s`;
}

/** `1 span`, `2 spans`. */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// Control characters, and those that turn the direction of what follows or cannot be seen.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}/gu;

/** A text as it is, with what cannot be seen made visible, so that no span looks like another. */
export function visible(text) {
  return String(text).replace(UNSEEN, (character) => {
    // By its number: few fonts have the pictures that Unicode has of them.
    return `\u27e8${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
  });
}

/** The same in one line, and not longer than this. */
export function line(text, most = 200) {
  const whole = String(text);
  const shown = visible(whole.slice(0, most).replace(/[\t\n\r]+/g, ' '));
  return whole.length > most ? `${shown}…` : shown;
}

/** A request to Kubernetes by what it is about: `PATCH …/heads/{:name}/status`. Group, version and namespace are much alike. */
export function shortName(name) {
  return name.replace(/^(\w+) \/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/[^/]+)?(\/.+)$/, '$1 …$2');
}

/** The value of an attribute as text. */
export function valueText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value) ?? '';
}

/** Round places between two durations for the marks of an axis, at most `most` of them. */
export function ticks(from, to, most) {
  const span = to - from;
  if (!(span > 0) || most < 1) return [];
  const step = niceStep(span / most);
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to && marks.length <= most + 1; at += step) marks.push(at);
  return marks;
}

const STEPS = [
  ...[1e9, 2e9, 5e9, 10e9, 15e9, 30e9],
  ...[60e9, 120e9, 300e9, 600e9, 900e9, 1800e9],
  ...[3600e9, 7200e9, 21_600e9, 43_200e9, 86_400e9],
];

function niceStep(least) {
  if (least < 1) return 1;
  if (least > 1e9 && least <= 86_400e9) return STEPS.find((step) => step >= least);
  const unit = least > 31_557_600e9 ? 31_557_600e9 : least > 86_400e9 ? 86_400e9 : 1;
  const power = 10 ** Math.floor(Math.log10(least / unit));
  return [1, 2, 5, 10].map((factor) => factor * power * unit).find((step) => step >= least * 0.999999);
}
