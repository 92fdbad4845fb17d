//! Functions by their symbol names.

use std::path::Path;

use anyhow::Context;

use crate::steps::command_output;

/// The functions of a program, by address.
#[derive(Debug)]
pub(super) struct SymbolTable(Vec<(u64, String)>);

impl SymbolTable {
    /// Reads the symbols of a program on disk.
    pub(super) fn from_program(program: &Path) -> anyhow::Result<Self> {
        let program = program.to_str().context("the program's path is not UTF-8")?;
        let table = command_output("nm", &["--defined-only", program]).context("nm is part of binutils")?;
        let mut symbols: Vec<(u64, String)> = table.lines().filter_map(parse_symbol).collect();
        symbols.sort();
        Ok(Self(symbols))
    }

    /// The function that contains an instruction.
    pub(super) fn function_at(&self, address: u64) -> Option<&str> {
        let before = self.0.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        self.0.get(before).map(|(_, name)| name.as_str())
    }

    /// How many functions match a pattern.
    pub(super) fn count_forms(&self, pattern: &str) -> usize {
        self.0.iter().filter(|(_, name)| matches(pattern, name)).count()
    }
}

/// A line of `nm`: address, kind, name.
fn parse_symbol(line: &str) -> Option<(u64, String)> {
    let mut words = line.split(' ');
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    let name = words.next()?;
    matches!(kind, "t" | "T" | "w" | "W").then(|| (address, name.to_owned()))
}

/// A symbol name with `*` for the parts that differ between builds: the hash at the end, those of crates, and
/// the compiler's number of a module.
pub(super) fn symbol_pattern(name: &str) -> String {
    let (name, module) = match name.split_once(".llvm.") {
        Some((name, _)) => (name, ".llvm.*"),
        None => (name, ""),
    };
    let hashed = name.strip_suffix('E').and_then(|rest| rest.split_at_checked(rest.len().checked_sub(19)?));
    if let Some((path, hash)) = hashed
        && hash.strip_prefix("17h").is_some_and(|hash| hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
    {
        return format!("{path}17h*E{module}");
    }
    without_crates(name) + module
}

/// Removes `Cs…_`, the hash of a crate in v0 mangling.
fn without_crates(name: &str) -> String {
    /// Shorter sequences may be part of an identifier.
    const MIN_PART_LEN: usize = 8;
    let mut parts = name.split("Cs");
    let mut pattern = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let hash = part.split('_').next().filter(|hash| hash.len() >= MIN_PART_LEN);
        let rest = hash.and_then(|hash| part.strip_prefix(hash));
        pattern += &rest.map_or(format!("Cs{part}"), |rest| format!("Cs*{rest}"));
    }
    pattern
}

/// Matches as the linker does: `*` is any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, more)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(start) else {
        return false;
    };
    let mut pieces = more.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_builds_is_left_open() {
        let cases = [
            ("_ZN13kubewake_otlp4scan4scan17haeab5d6ac325ef72E", "_ZN13kubewake_otlp4scan4scan17h*E"),
            ("_ZN13kubewake_otlp4scan4scan17haeab5d6ac325ef72E.llvm.144", "_ZN13kubewake_otlp4scan4scan17h*E.llvm.*"),
            ("_RNvMNtCsjrHSEGnQ3l9_3std4timeNtB2_7Instant3now", "_RNvMNtCs*_3std4timeNtB2_7Instant3now"),
            (
                "_RNvNtNtCsgEmfK2I1SDS_4core3str8converts9from_utf8.llvm.9",
                "_RNvNtNtCs*_4core3str8converts9from_utf8.llvm.*",
            ),
            ("mi_free", "mi_free"),
            ("Cs_short", "Cs_short"),
        ];
        for (name, expected) in cases {
            assert_eq!(symbol_pattern(name), expected);
            assert!(matches(expected, name), "{expected} is not {name}");
        }
        assert!(!matches("_ZN4scan17h*E", "_ZN5other17h0123456789abcdefE"));
        assert!(!matches("_RNvCs*_3std3now", "_RNvCsjrHSEGnQ3l9_3std4then"));
        assert!(!matches("mi_free", "mi_free_size"));
    }
}
