// The page cannot be made to run what a span says: there is no way from data to markup or code in it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const folder = new URL('../../page/', import.meta.url);
const files = (ending) => readdirSync(folder).filter((name) => name.endsWith(ending)).map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]);

test('no module makes markup or code of a text', () => {
  const ways = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\(|new Function|setTimeout\(\s*['"`]|javascript:/;
  for (const [name, text] of files('.js')) assert.doesNotMatch(text, ways, name);
});

test('the document has no script or style of its own', () => {
  const html = readFileSync(new URL('index.html', folder), 'utf8');
  assert.doesNotMatch(html, /<style|style=|\son\w+=/);
  for (const [script] of html.matchAll(/<script[^]*?<\/script>/g)) assert.match(script, /^<script (?:type="module" )?src="\/[a-z]+\.js"><\/script>$/);
});

test('nothing comes from another place', () => {
  for (const [name, text] of [...files('.js'), ...files('.css'), ...files('.html')]) {
    const urls = [...text.matchAll(/https?:\/\/[^\s'"`)]+/g)].map(([url]) => url).filter((url) => !/^http:\/\/(\$\{|127\.0\.0\.1|www\.w3\.org\/2000\/svg)/.test(url));
    assert.deepEqual(urls, [], name);
    assert.doesNotMatch(text, /@import|url\(/, name);
  }
});

test('every module that is named is there', () => {
  const there = new Set(readdirSync(folder));
  for (const [name, text] of files('.js')) {
    for (const [, imported] of text.matchAll(/from '\.\/([^']+)'/g)) assert.ok(there.has(imported), `${name} imports ${imported}`);
  }
  for (const [, asset] of readFileSync(new URL('index.html', folder), 'utf8').matchAll(/(?:href|src)="\/([^"]+)"/g)) assert.ok(there.has(asset), asset);
});
