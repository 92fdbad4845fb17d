//! Names as CRDs need them: all that is wrong with one, in one text.

use crate::kinds::names;

/// Why a text is no DNS-1035 label.
pub(crate) fn label(text: &str) -> Option<String> {
    joined(names::label_1035(text))
}

/// Why a text is no DNS-1123 subdomain.
pub(crate) fn subdomain(text: &str) -> Option<String> {
    joined(names::subdomain(text))
}

/// Why a text is no kind.
pub(crate) fn kind(text: &str) -> Option<String> {
    label(&text.to_lowercase()).map(|why| format!("may have mixed case, but should otherwise match: {why}"))
}

fn joined(reasons: Vec<String>) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join(","))
}
