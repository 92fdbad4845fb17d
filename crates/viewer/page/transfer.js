// Documents of OTLP JSON: from a file of the reader into the store.

import { importOtlp } from './api.js';
import { toast } from './clipboard.js';
import { h } from './dom.js';
import { plural } from './format.js';
import { navigate, traceUrl } from './router.js';

/** Beyond this the browser would stand still. */
const MOST = 256 * 1024 * 1024;

/** Lets the reader choose files. */
export function chooseFiles() {
  const input = h('input', { type: 'file', accept: '.json,.jsonl,.ndjson,application/json', multiple: true, class: 'offscreen' });
  input.addEventListener('change', () => take([...input.files]).finally(() => input.remove()));
  document.body.append(input);
  input.click();
}

/** Takes files that are dropped anywhere on the page. */
export function dropFiles() {
  const root = document.documentElement;
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  root.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    root.classList.add('dropping');
  });
  root.addEventListener('dragleave', (event) => event.relatedTarget === null && root.classList.remove('dropping'));
  root.addEventListener('drop', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    root.classList.remove('dropping');
    take([...event.dataTransfer.files]);
  });
}

async function take(files) {
  const traces = [];
  const refused = [];
  let spans = 0;
  for (const file of files) {
    try {
      if (file.size > MOST) throw new Error('the file is larger than 256 MiB; send it to the OTLP port instead');
      const taken = await importOtlp(file);
      traces.push(...taken.traces);
      spans += taken.spans;
      if (taken.rejected) refused.push(`${file.name}: ${taken.rejected.message}`);
    } catch (error) {
      toast(`Failed to import ${file.name}: ${error.message}`, true);
    }
  }
  const lost = refused.join('; ');
  if (spans) toast(`${plural(spans, 'span')} in ${plural(traces.length, 'trace')} imported${lost && `, without ${lost}`}`, Boolean(lost));
  else if (lost) toast(`Nothing was imported: ${lost}`, true);
  else if (traces.length) toast('All spans were already in the store');
  if (!traces.length) return;
  navigate(traces.length === 1 ? traceUrl(traces[0]) : '/search');
}
