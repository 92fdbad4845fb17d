// What the store does not hold, in words. Pure.

import { plural } from './format.js';

/** What had to go and what was too large, each only where there was some. */
export function losses(store) {
  const [dropped, refused] = [store?.dropped?.traces ?? 0, store?.refused?.traces ?? 0];
  return [
    dropped > 0 && `the store is full: ${plural(dropped, 'older trace')} dropped`,
    refused > 0 && `${plural(refused, 'trace')} too large for the store`,
  ].filter(Boolean);
}
