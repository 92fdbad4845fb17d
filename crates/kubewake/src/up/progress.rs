//! How far it is: a line for each step, with a spinner and the time on a terminal, and a plain line when it is done anywhere else.
//!
//! It goes to standard error; standard output is for what people and programs read when everything runs.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Smooth for the eye, and cheap.
const TICK: Duration = Duration::from_millis(80);

/// Shows the steps of a start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    terminal: bool,
    colours: bool,
}

/// A step that is being done. Dropped before it is done, it leaves nothing on the screen.
#[derive(Debug)]
pub(crate) struct Step {
    of: Progress,
    what: String,
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// As standard error and the environment ask for it.
    pub(crate) fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stderr().is_terminal() && !is_dumb;
        let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { terminal, colours }
    }

    /// Begins a step.
    pub(crate) fn begin(self, what: &str) -> Step {
        let bar = self.terminal.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
                bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(TICK);
            bar
        });
        Step { of: self, what: what.to_owned(), began: Instant::now(), bar }
    }

    /// Says something beside the steps.
    pub(crate) fn note(self, text: &str) {
        // Whoever does not listen misses nothing that matters.
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn mark(self, sign: char, colour: u8) -> String {
        if self.colours { format!("\u{1b}[{colour}m{sign}\u{1b}[0m") } else { sign.to_string() }
    }
}

impl Step {
    /// It is done, and this came of it.
    pub(crate) fn done(self, result: &str) {
        let mark = self.of.mark('✓', 32);
        self.end(&mark, result);
    }

    /// Tells more about where it is.
    pub(crate) fn at(&self, where_: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {where_}", self.what));
        }
    }

    fn end(self, mark: &str, result: &str) {
        let Self { of, what, began, bar } = &self;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        of.note(format!("{mark} {what:<18} {:>5.1} s  {result}", began.elapsed().as_secs_f64()).trim_end());
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
