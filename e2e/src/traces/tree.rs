//! A trace as a tree of labels.
//!
//! A label holds the parts of a span that stories compare: `name [service] kind`, then `error` if it failed,
//! then `~> name` for each link. Spans with the same labels from the root down are one node that counts them:
//! the causes matter, and not how often a controller ran.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::span::{ExportedSpan, SpanReference, SpanSet};

/// Labels from the root down.
pub type LabelPath = Vec<String>;

/// How an API server's spans relate to those of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerVisibility {
    /// The caller's span is the parent.
    Trusted,
    /// Each request starts a new trace, with a link to the caller's span.
    Linked,
    /// The API server's spans are not received.
    Hidden,
}

/// `service.name` of API servers.
pub const API_SERVER_SERVICE: &str = "apiserver";

/// The spans that share a path.
#[derive(Clone, Debug, Default)]
pub struct TraceNode {
    pub count: usize,
    /// The first error message among them.
    pub complaint: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct TraceTree(pub BTreeMap<LabelPath, TraceNode>);

impl TraceTree {
    /// The tree of a trace, for API servers that treat callers this way.
    ///
    /// Of an API server only its requests are shown, without the spans inside them. A span whose parent is
    /// missing is an orphan and marked as such.
    pub fn from_trace(spans: &SpanSet, trace: &str, callers: CallerVisibility) -> Self {
        let picture = TraceSpans::new(spans, trace, callers);
        let mut tree = Self::default();
        for span in picture.members.iter().filter(|span| picture.is_shown(span)) {
            let node = tree.0.entry(picture.path(span)).or_default();
            node.count += 1;
            node.complaint = node.complaint.take().or_else(|| span.error.clone());
        }
        tree
    }

    /// Labels of the roots, including orphans.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter(|path| path.len() == 1).flatten().map(String::as_str)
    }
}

impl fmt::Display for TraceTree {
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

/// The spans of linked traces, and their origins.
struct TraceSpans<'a> {
    spans: &'a SpanSet,
    members: Vec<&'a ExportedSpan>,
    callers: CallerVisibility,
}

impl<'a> TraceSpans<'a> {
    fn new(spans: &'a SpanSet, trace: &str, callers: CallerVisibility) -> Self {
        let mut picture = Self { spans, members: Vec::new(), callers };
        let mut known = BTreeSet::from([trace]);
        // A trace that is reached by a link may be linked to in turn.
        loop {
            let roots = spans.iter().filter(|span| span.parent.is_none() && !known.contains(&*span.id.trace));
            let more: Vec<&str> = roots
                // A caller whose own span is not exported cannot be resolved.
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

    /// The caller of a request, where the API server links to it.
    fn caller<'b>(&self, span: &'b ExportedSpan) -> Option<&'b SpanReference> {
        let is_request =
            self.callers == CallerVisibility::Linked && span.parent.is_none() && span.service == API_SERVER_SERVICE;
        span.links.first().filter(|_| is_request)
    }

    /// The parent, or the caller that is linked in its place.
    fn origin(&self, span: &ExportedSpan) -> Option<SpanReference> {
        let parent = span.parent_reference().filter(|parent| !self.is_called_by_hidden_server(span, parent));
        parent.or_else(|| self.caller(span).cloned())
    }

    /// Whether the parent is a span of an API server whose spans are not received: the span counts as a root.
    fn is_called_by_hidden_server(&self, span: &ExportedSpan, parent: &SpanReference) -> bool {
        self.callers == CallerVisibility::Hidden && span.kind == "server" && self.spans.get(parent).is_none()
    }

    /// Whether a span is shown. Spans inside a request of an API server are not, unless they are orphans.
    fn is_shown(&self, span: &ExportedSpan) -> bool {
        span.service != API_SERVER_SERVICE || span.kind == "server" || self.is_orphan(span)
    }

    fn is_orphan(&self, span: &ExportedSpan) -> bool {
        self.origin(span).is_some_and(|origin| self.spans.get(&origin).is_none())
    }

    fn path(&self, span: &ExportedSpan) -> LabelPath {
        let above = self.origin(span).and_then(|origin| self.spans.get(&origin));
        let mut path = above.map_or_else(LabelPath::new, |above| self.path(above));
        if self.is_shown(span) {
            path.push(self.label(span));
        }
        path
    }

    fn label(&self, span: &ExportedSpan) -> String {
        let orphan = if self.is_orphan(span) { "ORPHAN " } else { "" };
        let error = if span.error.is_some() { " error" } else { "" };
        let caller = self.caller(span);
        let links = span.links.iter().filter(|link| Some(*link) != caller);
        let linked = links.filter_map(|link| match self.spans.get(link) {
            Some(span) => Some(span.name.as_str()),
            // A request to the API server, traced or not.
            None if self.callers == CallerVisibility::Hidden => None,
            None => Some("somewhere"),
        });
        let names: BTreeSet<&str> = linked.collect();
        let links: String = names.iter().map(|name| format!(" ~> {name}")).collect();
        format!("{orphan}{} [{}] {}{error}{links}", span.name, span.service, span.kind)
    }
}
