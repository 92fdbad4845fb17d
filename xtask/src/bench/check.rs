//! Results, and whether they are what was promised.

use std::fmt;

/// The results of one scenario.
#[derive(Debug, Default)]
pub(crate) struct Section {
    title: &'static str,
    /// How it was measured, in a sentence or two.
    how: String,
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    checks: Vec<Check>,
}

/// One promise.
#[derive(Debug)]
struct Check {
    what: String,
    value: String,
    holds: bool,
}

impl Section {
    /// A section without results.
    pub(crate) fn new(title: &'static str, how: impl Into<String>) -> Self {
        Self { title, how: how.into(), ..Self::default() }
    }

    /// Begins a table.
    pub(crate) fn header(&mut self, columns: &[&'static str]) {
        self.header = columns.to_vec();
    }

    /// Adds a row to it.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Notes a promise, what was measured, and whether that is enough.
    pub(crate) fn check(&mut self, what: impl Into<String>, value: impl fmt::Display, holds: bool) {
        self.checks.push(Check { what: what.into(), value: value.to_string(), holds });
    }

    /// Something has to be zero.
    pub(crate) fn check_none(&mut self, what: impl Into<String>, count: u64) {
        self.check(what, count, count == 0);
    }

    /// How many promises do not hold.
    pub(crate) fn broken(&self) -> usize {
        self.checks.iter().filter(|check| !check.holds).count()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n\n{}\n", self.title, self.how)?;
        if !self.rows.is_empty() {
            writeln!(f, "| {} |", self.header.join(" | "))?;
            writeln!(f, "|{}", " --- |".repeat(self.header.len()))?;
            for row in &self.rows {
                writeln!(f, "| {} |", row.join(" | "))?;
            }
            writeln!(f)?;
        }
        for check in &self.checks {
            let mark = if check.holds { "holds" } else { "**does not hold**" };
            writeln!(f, "- {}: {} ({mark})", check.what, check.value)?;
        }
        Ok(())
    }
}

/// A number of bytes in MiB.
pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// The one in the middle.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
