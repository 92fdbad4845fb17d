//! How commands show what they found: forms, colours, tables.
//!
//! *Guaranteed*: colours only where standard output is a terminal and `NO_COLOR` is not set; no control
//! character of somebody else's text reaches the terminal; a reader who closes the pipe early is no error.

pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod units;

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context;
use clap::ValueEnum;
use console::{Style, Term};
use serde::Serialize;

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table for reading
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Only names, one per line, as kubectl prints them
    Name,
}

/// What is written to: how wide it is, and whether it shows colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminalLayout {
    pub(crate) width: usize,
    pub(crate) colours: bool,
}

/// What a colour is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Good,
    Warning,
    Bad,
    Dim,
    Strong,
    /// One of [`SERVICE_COLOUR_COUNT`].
    Service(usize),
}

/// How many colours tell services from each other. Red is for errors.
pub(crate) const SERVICE_COLOUR_COUNT: usize = 6;
/// Of what is no terminal, and has no width.
const DEFAULT_WIDTH: usize = 120;
/// A terminal that says less is not believed: a line would hold nothing.
const MIN_TERMINAL_WIDTH: usize = 40;

impl TerminalLayout {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        let width = Term::stdout().size_checked().map_or(DEFAULT_WIDTH, |(_, columns)| usize::from(columns));
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { width: width.max(MIN_TERMINAL_WIDTH), colours: wanted && !dumb && io::stdout().is_terminal() }
    }

    /// So many columns without colours.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Self {
        Self { width, colours: false }
    }

    /// The text in the colour of a tone, if there are colours.
    pub(crate) fn paint(&self, tone: TextStyle, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        let style = Style::new().force_styling(true);
        let style = match tone {
            TextStyle::Good => style.green(),
            TextStyle::Warning => style.yellow(),
            TextStyle::Bad => style.red().bold(),
            TextStyle::Dim => style.dim(),
            TextStyle::Strong => style.bold(),
            TextStyle::Service(number) => match number % SERVICE_COLOUR_COUNT {
                0 => style.cyan(),
                1 => style.magenta(),
                2 => style.blue().bright(),
                3 => style.green().bright(),
                4 => style.yellow().bright(),
                _ => style.magenta().bright(),
            },
        };
        style.apply_to(text).to_string()
    }
}

/// Something as a document of this form. None for the forms that are a command's own.
pub(crate) fn serialize_document<T: Serialize>(format: OutputFormat, what: &T) -> anyhow::Result<Option<String>> {
    let text = match format {
        OutputFormat::Json => serde_json::to_string_pretty(what)? + "\n",
        OutputFormat::Yaml => serde_saphyr::to_string(what).context("failed to write YAML")?,
        OutputFormat::Table | OutputFormat::Name => return Ok(None),
    };
    Ok(Some(text))
}

/// Prints, unless nobody reads any more.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_if_open(text).map(|_| ())
}

/// Prints, and says whether somebody reads still.
pub(crate) fn print_if_open(text: &str) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("failed to write to standard output"),
    }
}
