// Asking again and again, as long as somebody looks.

/**
 * Calls `ask(signal)` now and then each `every` milliseconds, but not while the page is hidden. `show` gets an answer that is another
 * than the last, `fail` an error. Gives what ends it, and `now()`.
 */
export function poll(every, ask, show, fail) {
  const stop = new AbortController();
  let [last, timer] = [null, 0];

  async function once() {
    clearTimeout(timer);
    try {
      const said = await ask(stop.signal);
      const text = JSON.stringify(said);
      if (text !== last && !stop.signal.aborted) show(said);
      last = text;
    } catch (error) {
      if (stop.signal.aborted || error.name === 'AbortError') return;
      // What was shown stays: only somebody who sees nothing yet is told.
      if (last === null) fail(error);
    }
    if (!stop.signal.aborted && !document.hidden) timer = setTimeout(once, every);
  }

  const wake = () => !document.hidden && once();
  document.addEventListener('visibilitychange', wake);
  once();
  return {
    now: once,
    close() {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', wake);
    },
  };
}
