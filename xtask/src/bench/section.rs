//! Results of a scenario, compared with what is promised.

use std::fmt;

/// Columns of a line in a document.
const MAX_COLUMNS: usize = 120;

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

impl PromiseCheck {
    fn to_line(&self) -> String {
        let mark = if self.holds { "holds" } else { "**does not hold**" };
        format!("- {}: {} ({mark})", self.what, self.value)
    }
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

    /// Prints the promises beyond the first `known`, while others are still measured. Returns how many there are.
    pub(crate) fn print_checks_after(&self, known: usize) -> usize {
        self.checks.iter().skip(known).for_each(|check| println!("{}", check.to_line()));
        self.checks.len()
    }

    /// The number of promises that do not hold.
    pub(crate) fn broken_promises(&self) -> usize {
        self.checks.iter().filter(|check| !check.holds).count()
    }
}

impl fmt::Display for BenchSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n\n{}\n", self.title, wrap(&self.how, ""))?;
        if !self.rows.is_empty() {
            writeln!(f, "| {} |", self.header.join(" | "))?;
            writeln!(f, "|{}", " --- |".repeat(self.header.len()))?;
            for row in &self.rows {
                writeln!(f, "| {} |", row.join(" | "))?;
            }
            writeln!(f)?;
        }
        for check in &self.checks {
            writeln!(f, "{}", wrap(&check.to_line(), "  "))?;
        }
        Ok(())
    }
}

/// The words of a text in lines of at most [`MAX_COLUMNS`]. All lines but the first are indented.
fn wrap(text: &str, indent: &str) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > MAX_COLUMNS {
            wrapped.push('\n');
            wrapped.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += width;
    }
    wrapped
}

pub(crate) fn format_mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_results_are_wrapped_and_keep_their_words() {
        let mut section = BenchSection::new("Title", "word ".repeat(30));
        section.check("a promise ".repeat(12).trim_end(), "a value", true);
        let shown = section.to_string();
        assert!(shown.lines().all(|line| line.chars().count() <= MAX_COLUMNS), "{shown}");
        assert_eq!(shown.split_whitespace().filter(|word| *word == "word").count(), 30);
        assert!(shown.ends_with("\n  promise: a value (holds)\n"), "{shown}");
    }
}
