//! The `Accept` header.

use std::cmp::Ordering;

use super::Media;

/// One media type that a caller takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clause<'h> {
    main: &'h str,
    sub: &'h str,
    quality: f64,
    params: Vec<(&'h str, &'h str)>,
}

impl<'h> Clause<'h> {
    fn parse(text: &'h str) -> Option<Self> {
        let mut parts = text.split(';');
        let essence = parts.next()?;
        let (main, sub) = match essence.split_once('/') {
            Some((main, sub)) => (main.trim(), sub.trim()),
            None if essence.trim() == "*" => ("*", "*"),
            None => return None,
        };
        if sub.is_empty() || sub.contains('/') {
            return None;
        }
        let mut clause = Self { main, sub, quality: 1.0, params: Vec::new() };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                name => clause.params.push((name, value.trim())),
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

/// The clauses, best first. Those of equal quality stay in their order, but what names a type goes before what does not.
pub(crate) fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').map(str::trim).filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| {
        let quality = b.quality.partial_cmp(&a.quality).unwrap_or(Ordering::Equal);
        quality.then((a.main == "*").cmp(&(b.main == "*"))).then((a.sub == "*").cmp(&(b.sub == "*")))
    });
    clauses
}
