//! Which module of a crate may use which, and which crates are pure.
//!
//! *Guaranteed*: each top-level module of a crate in [`tables::MODULE_TABLES`] has a line there and uses only the
//! modules of its line. The crates in [`PURE_CRATES`] use no file, network, clock, process or variable of the
//! environment. *Not done*: tests, and paths that begin with `super`.

mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::LazyLock,
};

use regex::Regex;

use self::tables::{MODULE_TABLES, ModuleTable};

/// Crates without I/O, so that everybody may use them anywhere.
const PURE_CRATES: [&str; 6] = [
    "crates/api/src",
    "crates/config/src",
    "crates/log-lines/src",
    "crates/log-operators/src",
    "crates/otlp/src",
    "crates/status/src",
];
/// Modules of tests, and entry points of fuzz targets.
const EXEMPT_MODULES: [&str; 5] = ["lib", "main", "tests", "testing", "fuzzing"];

static TESTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"#\[cfg\(test\)\]\s*mod \w+ \{"));
static COMMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"//.*"));
static CRATE_PATH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bcrate::(\{|\w+)"));
static FIRST_NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(\w+)"));
static OUTSIDE_ACCESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:fs::\w+|File::open|OpenOptions|env::var\w*|tokio::\w+|Instant::now|SystemTime::now|TcpStream|TcpListener|UdpSocket|to_socket_addrs|process::Command|thread::\w+)",
    )
});

#[expect(clippy::expect_used, reason = "the patterns are the constants above")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file")
}

/// Collects the modules that exist and what they use.
#[derive(Debug, Default)]
pub(super) struct ModuleRules {
    seen: BTreeMap<&'static str, BTreeSet<String>>,
}

impl ModuleRules {
    /// The violations of a file.
    pub(super) fn check_file(&mut self, name: &Path, text: &str) -> Vec<String> {
        let is_test =
            name.iter().any(|part| ["tests", "tests.rs", "testing", "testing.rs"].iter().any(|test| part == *test));
        if name.extension().is_none_or(|extension| extension != "rs") || is_test {
            return Vec::new();
        }
        let code = TESTS.split(text).next().unwrap_or_default();
        let code = COMMENT.replace_all(code, "");
        let mut problems = Vec::new();
        if PURE_CRATES.iter().any(|folder| name.starts_with(folder)) {
            let accesses = OUTSIDE_ACCESS.find_iter(&code);
            problems.extend(accesses.map(|access| format!("{}: the crate does no I/O", access.as_str())));
        }
        let table = MODULE_TABLES.iter().find_map(|table| Some((table, name.strip_prefix(table.folder).ok()?)));
        if let Some((table, module)) = table.and_then(|(table, path)| Some((table, module_name(path)?))) {
            problems.extend(self.check_uses(table, &module, &code));
        }
        problems
    }

    fn check_uses(&mut self, table: &'static ModuleTable, module: &str, code: &str) -> Vec<String> {
        self.seen.entry(table.folder).or_default().insert(module.to_owned());
        if EXEMPT_MODULES.contains(&module) {
            return Vec::new();
        }
        let Some(allowed) = table.allowed(module) else {
            return vec![format!("the module `{module}` has no line in xtask/src/tidy/module_rules/tables.rs")];
        };
        let used = used_names(code).into_iter();
        used.filter(|used| used != module && table.allowed(used).is_some() && !allowed.contains(&used.as_str()))
            .map(|used| format!("the module `{module}` must not use `{used}` (xtask/src/tidy/module_rules/tables.rs)"))
            .collect()
    }

    /// Lines for modules that do not exist.
    pub(super) fn problems(&self) -> Vec<String> {
        let exists =
            |table: &ModuleTable, module| self.seen.get(table.folder).is_some_and(|seen| seen.contains(module));
        let stale = |table: &'static ModuleTable| {
            let lines =
                table.lines.iter().flat_map(|(module, used)| std::iter::once(*module).chain(used.split_whitespace()));
            lines.filter(move |module| !exists(table, *module)).map(|module| {
                format!(
                    "{}: xtask/src/tidy/module_rules/tables.rs names the module `{module}`, which does not exist",
                    table.folder
                )
            })
        };
        MODULE_TABLES.iter().flat_map(stale).collect()
    }
}

/// The top-level module of a file, given its path below `src`.
fn module_name(path: &Path) -> Option<String> {
    let first = Path::new(path.iter().next()?);
    Some(first.file_stem()?.to_str()?.to_owned())
}

/// The first names of all paths that begin with `crate`.
fn used_names(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for found in CRATE_PATH.captures_iter(code) {
        let Some(first) = found.get(1) else { continue };
        if first.as_str() == "{" {
            names.extend(group_names(code.get(first.end()..).unwrap_or_default()));
        } else {
            names.insert(first.as_str().to_owned());
        }
    }
    names
}

/// The first name of each item of a `use` group, given the text after its opening brace.
fn group_names(text: &str) -> Vec<String> {
    let mut depth = 1_usize;
    let mut items = vec![String::new()];
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (depth, letter) {
            (0, _) => break,
            (1, ',') => items.push(String::new()),
            _ => items.iter_mut().next_back().into_iter().for_each(|item| item.push(letter)),
        }
    }
    let first = |item: &String| FIRST_NAME.captures(item)?.get(1).map(|name| name.as_str().to_owned());
    items.iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_paths_and_groups_are_found() {
        let code = "use crate::{\n    core::{A, b::C},\n    net,\n};\nuse crate::engine::Engine;\nfn a() { crate::service::b() }";
        assert_eq!(used_names(code), ["core", "engine", "net", "service"].map(str::to_owned).into());
    }

    #[test]
    fn use_against_the_layers_is_found() {
        let mut rules = ModuleRules::default();
        let mut check = |file: &str, code: &str| rules.check_file(Path::new(file), code);
        assert_eq!(check("kubernetes/apiserver/src/store/log.rs", "use crate::handler::Call;\n").len(), 1);
        assert_eq!(check("kubernetes/apiserver/src/handler.rs", "use crate::store::Store;\n"), Vec::<String>::new());
        assert_eq!(check("kubernetes/apiserver/src/unheard_of.rs", "").len(), 1);
        assert_eq!(check("crates/otlp/src/scan.rs", "let text = std::fs::read(path);\n// fs::read\n").len(), 1);
        let tests = "#[cfg(test)]\nmod tests {\n    use std::fs::read;\n}\n";
        assert_eq!(check("crates/otlp/src/scan.rs", tests), Vec::<String>::new());
    }
}
