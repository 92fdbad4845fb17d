//! From text to a checked document.

use std::{collections::BTreeSet, path::PathBuf};

use crate::{
    Document, Errors, Problem,
    decode::{self, Report},
    expand,
    problem::{self, Finding, Masked, Severity},
    sources::Sources,
    yaml,
};

/// A document that passed all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The document.
    pub document: Document,
    /// What is not wrong but may not be meant: components that nothing uses, settings without effect.
    pub warnings: Vec<Problem>,
    /// The files that `${file:…}` read: when one changes, so may the document.
    pub files: BTreeSet<PathBuf>,
}

/// Reads a configuration in the Collector's YAML.
///
/// The environment and files are read through `sources` and nowhere else. Whatever the text holds, this ends, in memory
/// bounded by the length of the text and of what it refers to.
///
/// # Errors
///
/// Everything that is wrong, at once: an answer is `Ok` only if the whole document is right.
pub fn load(text: &str, sources: &dyn Sources) -> Result<Loaded, Errors> {
    let report = Report::default();
    let mut faults = Vec::new();
    let tree = yaml::parse(text, &mut faults);
    for yaml::Fault { path, span, message, help } in faults {
        // What can be named by its path is a key.
        if !path.is_empty() {
            report.show(span);
        }
        report.add_error(Finding { path: path.join("::"), span, message, help });
    }
    let Some(mut tree) = tree else {
        return Err(problem::refuse(report.into_findings(), &Masked::unread(text)));
    };
    let written = tree.clone();
    let files = expand::expand(&mut tree, sources, &report);
    let document = decode::document(&tree, &report);
    let findings = report.into_findings();
    let masked = Masked::new(text, &written, &findings.public);
    if !findings.errors.is_empty() {
        return Err(problem::refuse(findings, &masked));
    }
    Ok(Loaded { document, warnings: problem::show(findings.warnings, Severity::Warning, &masked), files })
}
