//! Progress of the start: on a terminal a line for each step, with a spinner and the time; otherwise a plain
//! line at the end of each step.
//!
//! Progress goes to standard error; standard output is reserved for the final message.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Smooth for the eye, and cheap.
const SPINNER_INTERVAL: Duration = Duration::from_millis(80);

#[derive(Clone, Copy, Debug)]
pub(crate) struct StartProgress {
    terminal: bool,
    colours: bool,
}

/// A step in progress. If it is dropped before its end, its line disappears.
#[derive(Debug)]
pub(crate) struct ProgressStep {
    progress: StartProgress,
    what: String,
    began: Instant,
    bar: Option<ProgressBar>,
}

impl StartProgress {
    /// Configured from standard error and the environment.
    pub(crate) fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stderr().is_terminal() && !is_dumb;
        let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { terminal, colours }
    }

    pub(crate) fn begin_step(self, what: &str) -> ProgressStep {
        let bar = self.terminal.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
                bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(SPINNER_INTERVAL);
            bar
        });
        ProgressStep { progress: self, what: what.to_owned(), began: Instant::now(), bar }
    }

    /// Prints a line between the steps.
    pub(crate) fn print_note(self, text: &str) {
        // A closed standard error loses nothing essential.
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn format_mark(self, sign: char, colour: u8) -> String {
        if self.colours { format!("\u{1b}[{colour}m{sign}\u{1b}[0m") } else { sign.to_string() }
    }
}

impl ProgressStep {
    /// Ends the step with its result.
    pub(crate) fn succeed(self, result: &str) {
        let mark = self.progress.format_mark('✓', 32);
        self.finish(&mark, result);
    }

    /// Adds detail to the step's line.
    pub(crate) fn set_detail(&self, where_: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {where_}", self.what));
        }
    }

    fn finish(self, mark: &str, result: &str) {
        let Self { progress: of, what, began, bar } = &self;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        of.print_note(format!("{mark} {what:<18} {:>5.1} s  {result}", began.elapsed().as_secs_f64()).trim_end());
    }
}

impl Drop for ProgressStep {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
