// Looking for words in a trace.

import { valueText } from './format.js';

/** Beyond this, a value is not looked into: nobody means the end of a megabyte. */
const MOST = 16_384;

/**
 * Which nodes match. Words are separate, and each must be somewhere: in the name, the service, the ids, the status, attributes,
 * events or resource. `key=value` looks at attributes only, and `error` finds what failed as well.
 */
export function find(model, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return model.order.filter((node) => words.every((word) => matches(node, word)));
}

function matches(node, word) {
  const at = word.indexOf('=');
  if (at > 0) return attributes(node).some((attribute) => isPair(attribute, word.slice(0, at), word.slice(at + 1)));
  return textOf(node).includes(word);
}

/** Everything that words are looked for in, kept so that each letter typed need not gather it anew. */
const texts = new WeakMap();

function textOf(node) {
  const known = texts.get(node);
  if (known !== undefined) return known;
  const { span } = node;
  const pairs = attributes(node).flatMap((pair) => [pair.key, valueText(pair.value).slice(0, MOST)]);
  const names = events(node).map((event) => event.name);
  const all = [node.name, node.service, node.id, span.kind, span.status, span.message ?? '', span.scope ?? '', ...names, ...pairs];
  const text = all.join('\n').toLowerCase();
  texts.set(node, text);
  return text;
}

const events = (node) => node.span.events ?? [];

function attributes(node) {
  return [...(node.span.attributes ?? []), ...node.resource, ...events(node).flatMap((event) => event.attributes ?? [])];
}

const has = (text, word) => String(text).slice(0, MOST).toLowerCase().includes(word);

const isPair = (attribute, key, value) => attribute.key.toLowerCase() === key && has(valueText(attribute.value), value);
