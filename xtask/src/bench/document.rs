//! `docs/benchmarks.md`: the prose is written by people, each scenario's results by the bench.

use std::fs;

use anyhow::Context;

use super::{Scenario, check::Section, machine};
use crate::root;

/// What stands there before anything was measured.
const PROSE: &str = "# Benchmarks\n\n\
`cargo xtask bench` measures all of this and replaces the results below; `cargo xtask bench throughput` only that part.\n\
CPU time and memory are those of the process under test, from /proc. The relay (`benches/relay`) is the least that any\n\
collector can cost: it speaks gRPC on the same HTTP/2 stack, joins requests to the same size, and looks at nothing.\n";

/// Replaces the results of one scenario, and keeps everything else.
pub(crate) fn write(scenario: Scenario, section: &Section) -> anyhow::Result<()> {
    let path = root().join("docs/benchmarks.md");
    let old = fs::read_to_string(&path).unwrap_or_else(|_| PROSE.to_owned());
    let name = format!("{scenario:?}").to_lowercase();
    let results = format!("{section}\nMeasured {}.\n", machine::describe()?);
    fs::write(&path, replace(&old, &name, &results)).with_context(|| format!("cannot write {}", path.display()))
}

/// The document with these results between the marks of this name, which are added at the end if they are not there.
fn replace(document: &str, name: &str, results: &str) -> String {
    let (begin, end) = (format!("<!-- results: {name} -->\n"), format!("<!-- end: {name} -->\n"));
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
