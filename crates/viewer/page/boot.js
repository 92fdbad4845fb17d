// Before anything is painted: the theme that the reader chose, so that a dark room stays dark. Not a module, as those come later.

try {
  document.documentElement.dataset.theme = localStorage.getItem('kubewake.theme') ?? 'system';
} catch {
  document.documentElement.dataset.theme = 'system';
}
