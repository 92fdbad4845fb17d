// Asking again and again, as long as somebody looks.

/**
 * Calls `ask(signal)` now and then each `every` milliseconds, but not while the page is hidden. `show` gets an answer that is another
 * than the last, `fail` an error. A question ends the one before, so that no older answer comes after a newer one. Gives what ends it,
 * `now()`, and `soon(after)` for what is not decided yet.
 */
export function poll(every, ask, show, fail) {
  let [last, timer, question] = [null, 0, new AbortController()];

  function stop() {
    clearTimeout(timer);
    question.abort();
  }

  async function once() {
    stop();
    question = new AbortController();
    const { signal } = question;
    try {
      const said = await ask(signal);
      if (signal.aborted) return;
      const text = JSON.stringify(said);
      if (text !== last) show(said);
      last = text;
    } catch (error) {
      if (signal.aborted) return;
      // What was shown stays: only somebody who sees nothing yet is told.
      if (last === null) fail(error);
    }
    if (!document.hidden) timer = setTimeout(once, every);
  }

  const wake = () => !document.hidden && once();
  document.addEventListener('visibilitychange', wake);
  once();
  return {
    now: once,
    soon(after) {
      stop();
      timer = setTimeout(once, after);
    },
    close() {
      stop();
      document.removeEventListener('visibilitychange', wake);
    },
  };
}
