// Everybody can read it: WCAG asks for 4.5 between text and what is behind it, and 3 for bars and dots.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const css = readFileSync(new URL('../../page/base.css', import.meta.url), 'utf8');

/** The pair for light and dark that a line of the style sheet has. */
function pair(text) {
  const [, light, dark] = /light-dark\(([^,]+\)?), ((?:oklch\([^)]*\))|[^)]+)\)/.exec(text);
  return [light, dark].map(rgb);
}

function rgb(text) {
  if (text.startsWith('oklch')) return oklch(...text.match(/[\d.]+/g).map(Number));
  const hex = text.slice(1).length === 3 ? [...text.slice(1)].map((digit) => digit + digit).join('') : text.slice(1);
  return [0, 2, 4].map((at) => linear(Number.parseInt(hex.slice(at, at + 2), 16) / 255));
}

const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);

/** To linear sRGB, as CSS Color 4 says. */
function oklch(l, c, hue) {
  const [a, b] = [c * Math.cos((hue * Math.PI) / 180), c * Math.sin((hue * Math.PI) / 180)];
  const [x, y, z] = [l + 0.3963377774 * a + 0.2158037573 * b, l - 0.1055613458 * a - 0.0638541728 * b, l - 0.0894841775 * a - 1.291485548 * b].map((value) => value ** 3);
  const mixed = [4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z, -1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z, -0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z];
  return mixed.map((value) => Math.min(Math.max(value, 0), 1));
}

const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

function contrast(one, other) {
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const variable = (name) => pair(new RegExp(`--${name}: (light-dark.*);`).exec(css)[1]);

function enough(name, front, back, least) {
  front.forEach((color, scheme) => {
    const ratio = contrast(color, back[scheme]);
    assert.ok(ratio >= least, `${name} in ${scheme ? 'dark' : 'light'}: ${ratio.toFixed(2)}, at least ${least}`);
  });
}

test('text can be read on all that it stands on', () => {
  for (const front of ['text', 'dim', 'accent']) {
    for (const back of ['bg', 'raised', 'hover', 'accent-soft']) enough(`${front} on ${back}`, variable(front), variable(back), 4.5);
  }
  for (const look of ['bad', 'warn', 'good', 'accent']) {
    enough(`${look} on its soft`, variable(look), variable(`${look}-soft`), 4.5);
    enough(`${look} on bg`, variable(look), variable('bg'), 4.5);
  }
  enough('buttons', variable('on-accent'), variable('accent'), 4.5);
  enough('dim on sunk', variable('dim'), variable('sunk'), 4.5);
});

test('the colour of every service stands out', () => {
  const colors = [...css.matchAll(/\.svc-(\d+) \{ --svc: (light-dark.*); \}/g)];
  assert.equal(colors.length, 12);
  for (const [, number, text] of colors) {
    enough(`service ${number} on bg`, pair(text), variable('bg'), 3);
    enough(`service ${number} on hover`, pair(text), variable('hover'), 3);
  }
});
