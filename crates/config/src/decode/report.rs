//! Collects errors and warnings while a document is read.

use std::{
    cell::{Cell, RefCell},
    path::{Path, PathBuf},
};

use super::{cursor::Cursor, suggest};
use crate::{
    ComponentId,
    model::ContextKey,
    problem::{DocumentFinding, label_span},
    sources::ConfigSources,
    yaml::{NodeValue, TextSpan, YamlEntry},
};

/// Which end of a connection an authenticator serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionSide {
    Server,
    Client,
}

/// A reference to an authenticator, which is checked after the whole document was read.
pub(crate) struct AuthUse {
    pub(crate) id: ComponentId,
    pub(crate) side: ConnectionSide,
    pub(crate) path: String,
    pub(crate) span: TextSpan,
}

/// A reference to the extension that keeps the state of a component, which is checked after the whole document was
/// read.
pub(crate) struct StorageUse {
    pub(crate) id: ComponentId,
    pub(crate) path: String,
    pub(crate) span: TextSpan,
}

/// A use of a value from the context of requests, which is checked after the whole document was read.
pub(crate) struct ContextUse {
    pub(crate) context: ContextKey,
    pub(crate) path: String,
    pub(crate) span: TextSpan,
}

/// The findings so far. They are only added to, so the report is shared by reference.
#[derive(Default)]
pub(crate) struct DecodeReport<'s> {
    /// Locates the files that the document names; `None`: they are where the document says.
    sources: Option<&'s dyn ConfigSources>,
    errors: RefCell<Vec<DocumentFinding>>,
    warnings: RefCell<Vec<DocumentFinding>>,
    /// The number of errors that were not kept.
    more: Cell<usize>,
    auth: RefCell<Vec<AuthUse>>,
    storages: RefCell<Vec<StorageUse>>,
    contexts: RefCell<Vec<ContextUse>>,
    public: RefCell<Vec<TextSpan>>,
}

/// The number of findings of each severity that are kept; others are only counted.
const MAX_FINDINGS_PER_SEVERITY: usize = 1000;

impl<'s> DecodeReport<'s> {
    pub(crate) fn with_sources(sources: &'s dyn ConfigSources) -> Self {
        Self { sources: Some(sources), ..Self::default() }
    }

    /// The actual path of a file that the document names.
    pub(crate) fn locate(&self, path: &Path) -> PathBuf {
        self.sources.map_or_else(|| path.to_owned(), |sources| sources.locate(path))
    }

    /// Adds an error at a value.
    pub(crate) fn error(&self, at: &Cursor<'_>, message: impl Into<String>, help: impl Into<Option<String>>) {
        self.add_error(new_finding(at.path().to_owned(), at.span(), message, help));
    }

    /// Adds an error about a missing field; `at` is its parent.
    pub(crate) fn missing(
        &self,
        at: &Cursor<'_>,
        field: &str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.add_error(new_finding(at.join(field), at.key_span(), message, help));
    }

    /// Adds a warning at a value.
    pub(crate) fn warning(&self, at: &Cursor<'_>, message: impl Into<String>, help: impl Into<Option<String>>) {
        self.add_warning(new_finding(at.path().to_owned(), at.span(), message, help));
    }

    pub(crate) fn add_error(&self, finding: DocumentFinding) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MAX_FINDINGS_PER_SEVERITY { errors.push(finding) } else { self.more.set(self.more.get() + 1) }
    }

    pub(crate) fn add_warning(&self, finding: DocumentFinding) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < MAX_FINDINGS_PER_SEVERITY {
            warnings.push(finding);
        }
    }

    /// Marks a value that was read as something public, so that lines may show it.
    pub(crate) fn mark_public(&self, at: &Cursor<'_>) {
        let scalar = !matches!(at.node.value, NodeValue::Map(_) | NodeValue::Seq(_) | NodeValue::Bad);
        if scalar && at.node.origin.is_none() && !at.holds_credentials() {
            self.public.borrow_mut().push(at.node.span);
        }
    }

    /// Marks a position that lines may show.
    pub(crate) fn mark_span_public(&self, span: TextSpan) {
        self.public.borrow_mut().push(span);
    }

    /// Marks the keys of a map as public. Where text was expected they would be values.
    pub(crate) fn mark_keys_public(&self, entries: &[YamlEntry]) {
        self.public.borrow_mut().extend(entries.iter().map(|entry| label_span(&entry.key)));
    }

    /// Adds a reference to an authenticator.
    pub(crate) fn add_auth_use(&self, auth: AuthUse) {
        self.auth.borrow_mut().push(auth);
    }

    /// Takes the references that were added.
    pub(crate) fn take_auth(&self) -> Vec<AuthUse> {
        self.auth.take()
    }

    /// Adds a reference to an extension that keeps state.
    pub(crate) fn add_storage_use(&self, storage: StorageUse) {
        self.storages.borrow_mut().push(storage);
    }

    /// Takes the references that were added.
    pub(crate) fn take_storages(&self) -> Vec<StorageUse> {
        self.storages.take()
    }

    /// Adds a use of a value from the context.
    pub(crate) fn add_context_use(&self, context: ContextUse) {
        self.contexts.borrow_mut().push(context);
    }

    /// Takes the uses that were added.
    pub(crate) fn take_contexts(&self) -> Vec<ContextUse> {
        self.contexts.take()
    }

    /// Help for an unknown word; see [`suggest::help`]. None once findings are no longer kept, since it takes a
    /// while to compute.
    pub(crate) fn suggest(&self, word: &str, known: &[&str], label: &str) -> Option<String> {
        (self.more.get() == 0).then(|| suggest::help(word, known, label))
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors.borrow().len() + self.more.get()
    }

    /// Whether one of the errors after the first `since` is at a path or below it.
    pub(crate) fn error_within(&self, since: usize, path: &str) -> bool {
        let below =
            |found: &str| found.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        self.errors.borrow().iter().skip(since).any(|error| below(&error.path))
    }

    pub(crate) fn into_findings(self) -> DocumentFindings {
        DocumentFindings {
            errors: self.errors.into_inner(),
            more: self.more.get(),
            warnings: self.warnings.into_inner(),
            public: self.public.into_inner(),
        }
    }
}

/// The final findings of a report.
pub(crate) struct DocumentFindings {
    pub(crate) errors: Vec<DocumentFinding>,
    /// The number of errors beyond these.
    pub(crate) more: usize,
    pub(crate) warnings: Vec<DocumentFinding>,
    pub(crate) public: Vec<TextSpan>,
}

pub(crate) fn new_finding(
    path: String,
    span: TextSpan,
    message: impl Into<String>,
    help: impl Into<Option<String>>,
) -> DocumentFinding {
    DocumentFinding { path, span, message: message.into(), help: help.into() }
}
