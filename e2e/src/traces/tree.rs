//! A trace as a tree of labels.
//!
//! A label is all of a span that a story tells: `name [service] kind`, then `error` if it failed, then `~> name` for each link.
//! Spans with the same labels from the root down are one node that counts them, so that it does not matter
//! how often a controller looked, only what came of what.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::span::{Span, SpanRef, Spans};

/// Labels from the root down.
pub type Path = Vec<String>;

/// How an API server appears in traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// It takes the context of those who call it as the parent.
    Trusted,
    /// It begins a new trace for each request, with a link to the caller's span.
    Linked,
    /// Nobody gets its spans.
    Dark,
}

/// The service that an API server says it is.
pub const API_SERVER: &str = "apiserver";

/// A node: how many spans it stands for, and what the first that failed said.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// How many spans have this path.
    pub count: usize,
    /// What one of them complained of.
    pub complaint: Option<String>,
}

/// The whole.
#[derive(Clone, Debug, Default)]
pub struct Tree(pub BTreeMap<Path, Node>);

impl Tree {
    /// The tree of a trace, seen with these callers.
    ///
    /// Of an API server only its requests are shown: what happens inside them is folded into them. A span whose parent is not there
    /// is an orphan and shown as such.
    pub fn of(spans: &Spans, trace: &str, callers: Callers) -> Self {
        let picture = Picture::new(spans, trace, callers);
        let mut tree = Self::default();
        for span in picture.members.iter().filter(|span| picture.is_shown(span)) {
            let node = tree.0.entry(picture.path(span)).or_default();
            node.count += 1;
            node.complaint = node.complaint.take().or_else(|| span.error.clone());
        }
        tree
    }

    /// The labels of its roots, orphans among them.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter(|path| path.len() == 1).flatten().map(String::as_str)
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, node) in &self.0 {
            let label = path.last().map_or("", String::as_str);
            write!(f, "{:width$}{label}", "", width = 2 * (path.len() - 1))?;
            if node.count > 1 {
                write!(f, " x{}", node.count)?;
            }
            match node.complaint.as_deref().filter(|words| !words.is_empty()) {
                Some(words) => writeln!(f, "  # {}", words.replace('\n', " "))?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// The spans that belong together, and who came from whom.
struct Picture<'a> {
    spans: &'a Spans,
    members: Vec<&'a Span>,
    callers: Callers,
}

impl<'a> Picture<'a> {
    fn new(spans: &'a Spans, trace: &str, callers: Callers) -> Self {
        let mut picture = Self { spans, members: Vec::new(), callers };
        let mut known = BTreeSet::from([trace]);
        // What is reached by links may be linked to in turn.
        loop {
            let roots = spans.iter().filter(|span| span.parent.is_none() && !known.contains(&*span.id.trace));
            let more: Vec<&str> = roots
                // Whoever calls while it does nothing worth telling leaves no span of its own behind.
                .filter(|root| picture.caller(root).is_some_and(|link| spans.get(link).is_some()))
                .filter(|root| picture.caller(root).is_some_and(|link| known.contains(&*link.trace)))
                .map(|root| &*root.id.trace)
                .collect();
            if more.is_empty() {
                break;
            }
            known.extend(more);
        }
        picture.members = spans.iter().filter(|span| known.contains(&*span.id.trace)).collect();
        picture
    }

    /// The caller of a request that an API server did not trust.
    fn caller<'b>(&self, span: &'b Span) -> Option<&'b SpanRef> {
        let is_request = self.callers == Callers::Linked && span.parent.is_none() && span.service == API_SERVER;
        span.links.first().filter(|_| is_request)
    }

    /// Where it comes from, by its parent or by the link that stands for it.
    fn origin(&self, span: &Span) -> Option<SpanRef> {
        let parent = span.parent().filter(|parent| !self.is_of_dark_server(span, parent));
        parent.or_else(|| self.caller(span).cloned())
    }

    /// Whether a span was begun by a call of an API server whose own spans nobody gets here: it is as good as a root.
    fn is_of_dark_server(&self, span: &Span, parent: &SpanRef) -> bool {
        self.callers == Callers::Dark && span.kind == "server" && self.spans.get(parent).is_none()
    }

    /// Whether it is told. What an API server does inside a request is not, but an orphan always is.
    fn is_shown(&self, span: &Span) -> bool {
        span.service != API_SERVER || span.kind == "server" || self.is_orphan(span)
    }

    fn is_orphan(&self, span: &Span) -> bool {
        self.origin(span).is_some_and(|origin| self.spans.get(&origin).is_none())
    }

    fn path(&self, span: &Span) -> Path {
        let above = self.origin(span).and_then(|origin| self.spans.get(&origin));
        let mut path = above.map_or_else(Path::new, |above| self.path(above));
        if self.is_shown(span) {
            path.push(self.label(span));
        }
        path
    }

    fn label(&self, span: &Span) -> String {
        let orphan = if self.is_orphan(span) { "ORPHAN " } else { "" };
        let error = if span.error.is_some() { " error" } else { "" };
        let caller = self.caller(span);
        let links = span.links.iter().filter(|link| Some(*link) != caller);
        let linked = links.filter_map(|link| match self.spans.get(link) {
            Some(span) => Some(span.name.as_str()),
            // A call of the API server, whether it is traced or not.
            None if self.callers == Callers::Dark => None,
            None => Some("somewhere"),
        });
        let names: BTreeSet<&str> = linked.collect();
        let links: String = names.iter().map(|name| format!(" ~> {name}")).collect();
        format!("{orphan}{} [{}] {}{error}{links}", span.name, span.service, span.kind)
    }
}
