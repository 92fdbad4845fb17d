//! Measures the style of the code: names of types and functions, comments, and two habits.
//!
//! *Guaranteed*: the total of each figure over all crates stays within its limit, and no comment is wider than
//! code may be. *Not done*: whether a name is a good one; reviews decide that, and docs/glossary.md lists the
//! accepted metaphors.

use std::{collections::BTreeMap, path::Path, sync::LazyLock};

use regex::Regex;

/// Columns, as in rustfmt.toml, which leaves comments alone.
const MAX_COMMENT_COLUMNS: usize = 120;
/// Doc comments of up to this number of words mostly repeat the name of their item.
const SHORT_DOC_WORDS: usize = 4;
/// Limits as percentages of all types, and of all doc comments.
const MAX_ONE_WORD_TYPES: usize = 40;
const MAX_SHARED_NAMES: usize = 35;
const MAX_SHORT_DOCS: usize = 8;
/// Limits as totals over all crates.
const MAX_BOOL_MATCHES: usize = 5;
const MAX_TUPLE_LETS: usize = 20;
const MAX_VAGUE_FUNCTIONS: usize = 5;

/// Function names without a meaning of their own.
const VAGUE_FUNCTIONS: [&str; 9] = ["of", "at", "is", "with", "on", "by", "then", "again", "see"];

static TYPE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union) ([A-Z]\w*)"));
static TWO_WORDS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[A-Z][a-z0-9]*[A-Z]"));
static DOC: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)(?:^\s*///.*\n)+"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bfn (\w+)"));
static BOOL_MATCH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bmatch [^{};]*\{\s*(?:true|false) =>"));
static TUPLE_LET: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\s*let (?:mut )?\(\w+(?:, (?:mut )?\w+)+\) = \("));
static TESTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"#\[cfg\(test\)\]\s*mod \w+ \{"));

#[expect(clippy::expect_used, reason = "the patterns are the constants above")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file")
}

/// Totals over all files so far.
#[derive(Debug, Default)]
pub(super) struct StyleFigures {
    types: BTreeMap<String, usize>,
    docs: usize,
    short_docs: usize,
    bool_matches: usize,
    tuple_lets: usize,
    vague_functions: usize,
}

impl StyleFigures {
    /// Adds a file to the totals, and returns its own violations.
    pub(super) fn count(&mut self, name: &Path, text: &str) -> Vec<String> {
        if name.extension().is_none_or(|extension| extension != "rs") {
            return Vec::new();
        }
        if (name.starts_with("crates") || name.starts_with("kubernetes")) && !is_test(name) {
            self.add(TESTS.split(text).next().unwrap_or_default());
        }
        let is_wide = |line: &str| {
            // An address cannot be wrapped.
            let is_comment = line.trim_start().starts_with("//") && !line.contains("]: http");
            is_comment && line.chars().count() > MAX_COMMENT_COLUMNS
        };
        let wide = text.lines().enumerate().filter(|(_, line)| is_wide(line));
        wide.map(|(index, _)| format!("line {}: the comment has more than {MAX_COMMENT_COLUMNS} columns", index + 1))
            .collect()
    }

    fn add(&mut self, code: &str) {
        for name in TYPE.captures_iter(code).filter_map(|found| found.get(1)) {
            *self.types.entry(name.as_str().to_owned()).or_default() += 1;
        }
        for block in DOC.find_iter(code) {
            let words = block.as_str().lines().flat_map(|line| line.trim_start().trim_start_matches('/').split(' '));
            self.docs += 1;
            self.short_docs += usize::from(words.filter(|word| !word.is_empty()).count() <= SHORT_DOC_WORDS);
        }
        let functions = FUNCTION.captures_iter(code).filter_map(|found| found.get(1));
        self.vague_functions += functions.filter(|name| VAGUE_FUNCTIONS.contains(&name.as_str())).count();
        self.bool_matches += BOOL_MATCH.find_iter(code).count();
        self.tuple_lets += TUPLE_LET.find_iter(code).count();
    }

    /// Violations of the limits on the totals.
    pub(super) fn problems(&self) -> Vec<String> {
        let types: usize = self.types.values().sum();
        let one_word: usize =
            self.types.iter().filter(|(name, _)| !TWO_WORDS.is_match(name)).map(|(_, count)| count).sum();
        let shared: usize = self.types.values().filter(|count| **count > 1).sum();
        let percent = |part: usize, all: usize| (100 * part).div_ceil(all.max(1));
        let figures = [
            ("% of all types have a one-word name", percent(one_word, types), MAX_ONE_WORD_TYPES),
            ("% of all types share their name with another", percent(shared, types), MAX_SHARED_NAMES),
            ("% of all doc comments have four words or fewer", percent(self.short_docs, self.docs), MAX_SHORT_DOCS),
            (" times `match` on a bool", self.bool_matches, MAX_BOOL_MATCHES),
            (" times `let` of a tuple of values", self.tuple_lets, MAX_TUPLE_LETS),
            (" functions are named by a preposition", self.vague_functions, MAX_VAGUE_FUNCTIONS),
        ];
        let over = figures.iter().filter(|(_, figure, limit)| figure > limit);
        over.map(|(what, figure, limit)| format!("crates: {figure}{what}, at most {limit}")).collect()
    }
}

fn is_test(name: &Path) -> bool {
    let parts = || name.iter().filter_map(|part| part.to_str());
    parts().any(|part| ["tests", "benches", "testing"].contains(&part))
        || parts().next_back().is_some_and(|file| ["tests.rs", "testing.rs"].contains(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> StyleFigures {
        let mut figures = StyleFigures::default();
        assert_eq!(figures.count(Path::new("crates/a/src/a.rs"), text), Vec::<String>::new());
        figures
    }

    #[test]
    fn names_and_habits_are_counted_without_tests() {
        let code = "/// Its name.\nstruct Name;\n\npub(crate) struct PipelineCache;\n\nfn of() {\n    let (a, b) = (1, 2);\n    \
            match a == b { true => 1, false => 2 };\n}\n\n#[cfg(test)]\nmod tests {\n    struct Other;\n}\n";
        let figures = counted(code);
        assert_eq!(figures.types.keys().collect::<Vec<_>>(), ["Name", "PipelineCache"]);
        assert_eq!((figures.docs, figures.short_docs, figures.vague_functions), (1, 1, 1));
        assert_eq!((figures.bool_matches, figures.tuple_lets), (1, 1));
        assert_eq!(
            figures.problems(),
            [
                "crates: 50% of all types have a one-word name, at most 40",
                "crates: 100% of all doc comments have four words or fewer, at most 8",
            ]
        );
    }

    #[test]
    fn wide_comments_are_named_by_their_line() {
        let text = format!("fn main() {{}}\n// {}\n", "x".repeat(MAX_COMMENT_COLUMNS));
        let problems = StyleFigures::default().count(Path::new("xtask/src/main.rs"), &text);
        assert_eq!(problems, ["line 2: the comment has more than 120 columns"]);
        let link = format!("//! [page]: https://example.com/{}\n", "x".repeat(MAX_COMMENT_COLUMNS));
        assert_eq!(StyleFigures::default().count(Path::new("xtask/src/main.rs"), &link), Vec::<String>::new());
    }
}
