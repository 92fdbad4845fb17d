// Dark or light: as the system says, until the reader chooses.

const KEY = 'kubewake.theme';
const CHOICES = ['system', 'light', 'dark'];

/** Reading and writing may be forbidden in a private window: the choice is then for this page alone. */
export function stored(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch {
    return null;
  }
  return value;
}

let choice = CHOICES.includes(stored(KEY)) ? stored(KEY) : 'system';
const system = matchMedia('(prefers-color-scheme: dark)');
const changed = () => dispatchEvent(new Event('kubewake:theme'));
system.addEventListener('change', changed);

export const theme = {
  get choice() {
    return choice;
  },
  apply() {
    document.documentElement.dataset.theme = choice;
    changed();
  },
  next() {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    stored(KEY, choice);
    theme.apply();
  },
};
