//! The `Accept` header.

use super::Media;

/// More clauses than this are not looked at, as their sort is quadratic.
const MAX_CLAUSES: usize = 256;

/// One media type that a caller takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clause<'h> {
    main: &'h str,
    sub: &'h str,
    quality: f64,
    params: Vec<(&'h str, &'h str)>,
}

impl<'h> Clause<'h> {
    /// Reads a clause as kube-apiserver's parser does: names are compared as they are written, only spaces are overlooked, and a
    /// quality that is no number is zero, which still is a choice.
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

    /// Whether another form than the object's own is asked for.
    pub(crate) fn transforms(&self) -> bool {
        ["as", "g", "v"].iter().any(|name| self.param(name).is_some())
    }

    /// Whether it takes this kind of objects' bytes.
    pub(crate) fn includes(&self, media: Media) -> bool {
        self.takes(media.name())
    }

    /// Whether it takes this media type.
    pub(crate) fn takes(&self, name: &str) -> bool {
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
/// kube-apiserver sorts by a comparison that is no order: what names a type goes before what does not, whatever their qualities, if it
/// stands behind it. So this is the same sort, an insertion sort, and not another one.
pub(crate) fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> =
        header.split(',').map(trim).filter_map(Clause::parse).take(MAX_CLAUSES).collect();
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && is_before(clauses.get(at), clauses.get(at - 1)) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn is_before(one: Option<&Clause<'_>>, other: Option<&Clause<'_>>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    one.quality > other.quality || (one.main != "*" && other.main == "*") || (one.sub != "*" && other.sub == "*")
}

fn trim(text: &str) -> &str {
    text.trim_matches(' ')
}
