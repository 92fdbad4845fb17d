//! Results of a scenario, compared with what is promised.

use std::fmt;

#[derive(Debug, Default)]
pub(crate) struct BenchSection {
    title: &'static str,
    /// The method, in a sentence or two.
    how: String,
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    checks: Vec<PromiseCheck>,
}

#[derive(Debug)]
struct PromiseCheck {
    what: String,
    value: String,
    holds: bool,
}

impl BenchSection {
    pub(crate) fn new(title: &'static str, how: impl Into<String>) -> Self {
        Self { title, how: how.into(), ..Self::default() }
    }

    pub(crate) fn header(&mut self, columns: &[&'static str]) {
        self.header = columns.to_vec();
    }

    /// Adds a row to the table.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Records a promise, the measured value, and whether the promise holds.
    pub(crate) fn check(&mut self, what: impl Into<String>, value: impl fmt::Display, holds: bool) {
        self.checks.push(PromiseCheck { what: what.into(), value: value.to_string(), holds });
    }

    /// Records a promise that a count is zero.
    pub(crate) fn check_none(&mut self, what: impl Into<String>, count: u64) {
        self.check(what, count, count == 0);
    }

    /// The number of promises that do not hold.
    pub(crate) fn broken_promises(&self) -> usize {
        self.checks.iter().filter(|check| !check.holds).count()
    }
}

impl fmt::Display for BenchSection {
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

pub(crate) fn format_mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
