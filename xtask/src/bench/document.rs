//! Updates `docs/benchmarks.md`: people write the prose, and the bench each scenario's results.

use std::fs;

use anyhow::Context;

use super::{Scenario, machine, section::BenchSection};
use crate::workspace_root;

/// The initial content of the document.
const INITIAL_TEXT: &str = "# Benchmarks\n\n\
`cargo xtask bench` measures all figures of this page and replaces the results below; `cargo xtask bench throughput`\n\
replaces only that part. CPU time and memory are those of the process under test, from /proc. The relay\n\
(`benches/relay`) is the lower bound of the cost of any collector: it speaks gRPC on the same HTTP/2 stack, joins\n\
requests to the same size, and looks at no request.\n";

/// Replaces the results of one scenario.
pub(crate) fn write(scenario: Scenario, section: &BenchSection) -> anyhow::Result<()> {
    let path = workspace_root().join("docs/benchmarks.md");
    let old = fs::read_to_string(&path).unwrap_or_else(|_| INITIAL_TEXT.to_owned());
    let name = format!("{scenario:?}").to_lowercase();
    let results = format!("{section}\nMeasured {}.\n", machine::describe()?);
    fs::write(&path, replace(&old, &name, &results)).with_context(|| format!("failed to write {}", path.display()))
}

/// The document with these results between the markers of this name, which are appended if they are missing.
fn replace(document: &str, name: &str, results: &str) -> String {
    let begin = format!("<!-- results: {name} -->\n");
    let end = format!("<!-- end: {name} -->\n");
    let marked = document.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    match marked {
        Some((before, after)) => format!("{before}{begin}{results}{end}{after}"),
        None => format!("{}\n\n{begin}{results}{end}", document.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_replaced_and_prose_is_kept() {
        let first = replace("# Title\n", "idle", "one\n");
        assert_eq!(first, "# Title\n\n<!-- results: idle -->\none\n<!-- end: idle -->\n");
        let second = replace(&(first + "more prose\n"), "idle", "two\n");
        assert_eq!(second, "# Title\n\n<!-- results: idle -->\ntwo\n<!-- end: idle -->\nmore prose\n");
    }
}
