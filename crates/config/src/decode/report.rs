//! Where errors and warnings are kept while a document is read.

use std::cell::{Cell, RefCell};

use super::{cursor::Cursor, suggest};
use crate::{
    ComponentId,
    model::Context,
    problem::{Finding, label_span},
    yaml::{Entry, Span, Value},
};

/// Which end of a connection an authenticator serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

/// A place that names an authenticator; whether it exists is known only when the whole document was read.
pub(crate) struct AuthUse {
    pub(crate) id: ComponentId,
    pub(crate) side: Side,
    pub(crate) path: String,
    pub(crate) span: Span,
}

/// A place that takes a value from the context of requests; whether these have it is known only when the whole document was
/// read.
pub(crate) struct ContextUse {
    pub(crate) context: Context,
    pub(crate) path: String,
    pub(crate) span: Span,
}

/// Everything that was found so far. Reading only ever adds to it, so it is shared by reference.
#[derive(Default)]
pub(crate) struct Report {
    errors: RefCell<Vec<Finding>>,
    warnings: RefCell<Vec<Finding>>,
    /// How many errors there were that are not kept.
    more: Cell<usize>,
    auth: RefCell<Vec<AuthUse>>,
    contexts: RefCell<Vec<ContextUse>>,
    public: RefCell<Vec<Span>>,
}

/// So many findings of each kind are kept; whoever has more begins with these, and the rest is only counted.
const MAX_FOUND: usize = 1000;

impl Report {
    /// An error at a value.
    pub(crate) fn error(&self, at: &Cursor<'_>, message: impl Into<String>, help: impl Into<Option<String>>) {
        self.add_error(finding(at.path().to_owned(), at.span(), message, help));
    }

    /// An error about a field that is not there: `at` is what should hold it.
    pub(crate) fn missing(
        &self,
        at: &Cursor<'_>,
        field: &str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.add_error(finding(at.join(field), at.key_span(), message, help));
    }

    /// A warning at a value.
    pub(crate) fn warning(&self, at: &Cursor<'_>, message: impl Into<String>, help: impl Into<Option<String>>) {
        self.add_warning(finding(at.path().to_owned(), at.span(), message, help));
    }

    pub(crate) fn add_error(&self, finding: Finding) {
        let mut errors = self.errors.borrow_mut();
        match errors.len() < MAX_FOUND {
            true => errors.push(finding),
            false => self.more.set(self.more.get() + 1),
        }
    }

    pub(crate) fn add_warning(&self, finding: Finding) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < MAX_FOUND {
            warnings.push(finding);
        }
    }

    /// Remembers that a value was read as something that is no secret, so that its line may show it.
    pub(crate) fn is_public(&self, at: &Cursor<'_>) {
        let scalar = !matches!(at.node.value, Value::Map(_) | Value::Seq(_) | Value::Bad);
        if scalar && at.node.origin.is_none() && !at.holds_credentials() {
            self.public.borrow_mut().push(at.node.span);
        }
    }

    /// Remembers a place that lines may show.
    pub(crate) fn show(&self, span: Span) {
        self.public.borrow_mut().push(span);
    }

    /// Remembers that a map was read as one, so that lines may show its keys. Where text was expected they are values.
    pub(crate) fn has_public_keys(&self, entries: &[Entry]) {
        self.public.borrow_mut().extend(entries.iter().map(|entry| label_span(&entry.key)));
    }

    /// Remembers a reference to an authenticator.
    pub(crate) fn uses_auth(&self, auth: AuthUse) {
        self.auth.borrow_mut().push(auth);
    }

    /// The references that were remembered.
    pub(crate) fn take_auth(&self) -> Vec<AuthUse> {
        self.auth.take()
    }

    /// Remembers a value from the context.
    pub(crate) fn uses_context(&self, context: ContextUse) {
        self.contexts.borrow_mut().push(context);
    }

    /// The values from the context that were remembered.
    pub(crate) fn take_contexts(&self) -> Vec<ContextUse> {
        self.contexts.take()
    }

    /// Help for an unknown word; see [`suggest::help`]. None once nobody would see it, since it takes a while to find.
    pub(crate) fn suggest(&self, word: &str, known: &[&str], label: &str) -> Option<String> {
        (self.more.get() == 0).then(|| suggest::help(word, known, label))
    }

    /// How many errors there are.
    pub(crate) fn errors(&self) -> usize {
        self.errors.borrow().len() + self.more.get()
    }

    /// Whether one of the errors after the first `since` is at a path or below it.
    pub(crate) fn error_within(&self, since: usize, path: &str) -> bool {
        let below =
            |found: &str| found.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        self.errors.borrow().iter().skip(since).any(|error| below(&error.path))
    }

    /// What was found.
    pub(crate) fn into_findings(self) -> Findings {
        Findings {
            errors: self.errors.into_inner(),
            more: self.more.get(),
            warnings: self.warnings.into_inner(),
            public: self.public.into_inner(),
        }
    }
}

/// What a report holds in the end.
pub(crate) struct Findings {
    pub(crate) errors: Vec<Finding>,
    /// How many errors there were beyond these.
    pub(crate) more: usize,
    pub(crate) warnings: Vec<Finding>,
    /// Where values stand that are no secrets.
    pub(crate) public: Vec<Span>,
}

pub(crate) fn finding(
    path: String,
    span: Span,
    message: impl Into<String>,
    help: impl Into<Option<String>>,
) -> Finding {
    Finding { path, span, message: message.into(), help: help.into() }
}
