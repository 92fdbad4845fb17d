// Elements are made here and nowhere else. What comes from a span is only ever text: there is no way to hand over markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Makes an element. `class`, `text`, `on` (listeners), `css` (properties, set one by one, which a strict content policy allows) and
 * `data` are special; everything else is an attribute, left out when it is null or false.
 */
export function h(tag, props = {}, ...children) {
  return dress(document.createElement(tag), props, children);
}

/** The same in SVG. */
export function s(tag, props = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), props, children);
}

function dress(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') element.setAttribute('class', value);
    else if (name === 'text') element.textContent = value;
    else if (name === 'on') for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    else if (name === 'css') for (const [key, style] of Object.entries(value)) element.style.setProperty(key, style);
    else if (name === 'data') Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child);
  }
}

/** Puts these in the place of everything that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** The same, but elements that stay where they are are not touched: they keep the focus and the pointer. */
export function arrange(element, wanted) {
  const keep = new Set(wanted);
  for (const child of [...element.childNodes]) if (!keep.has(child)) child.remove();
  wanted.forEach((child, at) => {
    if (element.childNodes[at] !== child) element.insertBefore(child, element.childNodes[at] ?? null);
  });
}

const PATHS = {
  chevron: 'M6 4l4 4-4 4',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5L14 14',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7',
  link: 'M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.5 4.5l-1 1M9 11.5l-1 1A3 3 0 0 1 3.5 8l1-1',
  error: 'M8 1.5l6.5 11.5h-13zM8 6v3.5M8 11.2v.3',
  clock: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3l2 1.5',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  auto: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 2v12M8 5l4 0M8 8h6M8 11h4',
  help: 'M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M8 12.5v.3',
  upload: 'M8 10V2.5M5 5l3-3 3 3M3 10v3.5h10V10',
  download: 'M8 2.5V10M5 7.5l3 3 3-3M3 11v2.5h10V11',
  pause: 'M5.5 4v8M10.5 4v8',
  play: 'M5 3.5l7 4.5-7 4.5z',
  filter: 'M2 4h12M4.5 8h7M6.5 12h3',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  box: 'M8 1.5l5.5 3v7L8 14.5l-5.5-3v-7zM2.5 4.5L8 7.5l5.5-3M8 7.5v7',
  reset: 'M3 8a5 5 0 1 0 1.5-3.5M3 2.5v3h3',
};

/** A line drawing beside a text, which says the same: readers of the screen are not told of it. */
export function icon(name) {
  return s('svg', { class: `icon icon-${name}`, viewBox: '0 0 16 16', 'aria-hidden': 'true' }, s('path', { d: PATHS[name] }));
}

/** A button with a drawing, and a name that is shown beside it or told to readers of the screen. */
export function button(drawing, name, click, { quiet = false, class: extra = '', ...rest } = {}) {
  const props = { type: 'button', class: `button ${quiet ? 'quiet' : ''} ${extra}`, title: quiet ? name : null, 'aria-label': quiet ? name : null };
  return h('button', { ...props, ...rest, on: { click } }, drawing && icon(drawing), !quiet && h('span', { text: name }));
}
