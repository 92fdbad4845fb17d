//! Loads a document: from text to the checked model.

use std::{collections::BTreeSet, path::PathBuf};

use crate::{
    CollectorDocument, DocumentErrors, DocumentProblem,
    decode::{self, DecodeReport},
    expand,
    problem::{self, DocumentFinding, MaskedText, ProblemSeverity},
    sources::ConfigSources,
    yaml,
};

/// A document that passed all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedDocument {
    pub document: CollectorDocument,
    /// Problems that do not make it invalid, such as unused components and settings without effect.
    pub warnings: Vec<DocumentProblem>,
    /// The located files that `${file:…}` references read: when one changes, so may the document.
    pub files: BTreeSet<PathBuf>,
}

/// Parses and checks a configuration in the Collector's YAML.
///
/// The environment and files are read only through `sources`. For any text this ends, in memory bounded by the
/// length of the text and of the content that it references.
///
/// # Errors
///
/// All errors of the document. The result is `Ok` only if there are none.
pub fn load(text: &str, sources: &dyn ConfigSources) -> Result<LoadedDocument, DocumentErrors> {
    let report = DecodeReport::with_sources(sources);
    let mut faults = Vec::new();
    let tree = yaml::parse(text, &mut faults);
    for yaml::YamlFault { path, span, message, help } in faults {
        // Only keys have a path.
        if !path.is_empty() {
            report.mark_span_public(span);
        }
        report.add_error(DocumentFinding { path: path.join("::"), span, message, help });
    }
    let Some(mut tree) = tree else {
        return Err(problem::into_errors(report.into_findings(), &MaskedText::new_unparsed(text)));
    };
    let written = tree.clone();
    let files = expand::expand(&mut tree, sources, &report);
    let document = decode::document(&tree, &report);
    let findings = report.into_findings();
    let masked = MaskedText::new(text, &written, &findings.public);
    if !findings.errors.is_empty() {
        return Err(problem::into_errors(findings, &masked));
    }
    Ok(LoadedDocument {
        document,
        warnings: problem::into_problems(findings.warnings, ProblemSeverity::Warning, &masked),
        files,
    })
}
