//! Parses the `Accept` header.

use super::MediaType;

/// The limit of clauses, as sorting them is quadratic.
const MAX_ACCEPT_CLAUSES: usize = 256;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AcceptClause<'h> {
    main: &'h str,
    sub: &'h str,
    quality: f64,
    params: Vec<(&'h str, &'h str)>,
}

impl<'h> AcceptClause<'h> {
    /// Parses a clause like kube-apiserver: names are compared literally, only spaces are ignored, and an
    /// invalid quality is zero, which still is a choice.
    fn parse(text: &'h str) -> Option<Self> {
        let (essence, params) = text.split_once(';').unwrap_or((text, ""));
        let (main, rest) = essence.split_once('/').unwrap_or((essence, ""));
        let main = trim(main);
        let sub = match rest.split_once('/').unwrap_or((rest, "")) {
            ("", "") if main == "*" => "*",
            ("", _) => return None,
            (sub, "") => trim(sub),
            _ => return None,
        };
        let mut clause = Self { main, sub, quality: 1.0, params: Vec::new() };
        for (name, value) in params.split(';').filter_map(|part| part.split_once('=')) {
            let value = value.strip_suffix('=').unwrap_or(value);
            if value.is_empty() || value.contains('=') {
                continue;
            }
            match trim(name) {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                name => clause.params.push((name, trim(value))),
            }
        }
        Some(clause)
    }

    /// The last value of a parameter.
    pub(crate) fn param(&self, name: &str) -> Option<&'h str> {
        self.params.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Whether it requests another form than the object's own.
    pub(crate) fn transforms(&self) -> bool {
        ["as", "g", "v"].iter().any(|name| self.param(name).is_some())
    }

    /// Whether it includes this media type of objects.
    pub(crate) fn includes(&self, media: MediaType) -> bool {
        self.accepts_media_type(media.name())
    }

    pub(crate) fn accepts_media_type(&self, name: &str) -> bool {
        let (main, sub) = name.split_once('/').unwrap_or_default();
        match (self.main, self.sub) {
            ("*", "*") => true,
            (own, "*") => own == main,
            (own, own_sub) => own == main && own_sub == sub,
        }
    }
}

/// The clauses, best first.
///
/// kube-apiserver sorts by a comparison that is not an order: a clause with a type precedes one without,
/// whatever their qualities, if it comes after it. So this is the same insertion sort, and no other algorithm.
pub(crate) fn parse(header: &str) -> Vec<AcceptClause<'_>> {
    let mut clauses: Vec<AcceptClause<'_>> =
        header.split(',').map(trim).filter_map(AcceptClause::parse).take(MAX_ACCEPT_CLAUSES).collect();
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && is_before(clauses.get(at), clauses.get(at - 1)) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn is_before(one: Option<&AcceptClause<'_>>, other: Option<&AcceptClause<'_>>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    one.quality > other.quality || (one.main != "*" && other.main == "*") || (one.sub != "*" && other.sub == "*")
}

fn trim(text: &str) -> &str {
    text.trim_matches(' ')
}
