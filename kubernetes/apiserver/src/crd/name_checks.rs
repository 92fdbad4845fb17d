//! Validates names in CRDs: all violations in one message.

use crate::api::text;

/// Why a text is not a DNS-1035 label.
pub(crate) fn label(name: &str) -> Option<String> {
    joined(text::label_1035(name))
}

/// Why a text is not a DNS-1123 subdomain.
pub(crate) fn subdomain(name: &str) -> Option<String> {
    joined(text::subdomain(name))
}

/// Why a text is not a valid kind.
pub(crate) fn kind(name: &str) -> Option<String> {
    label(&name.to_lowercase()).map(|why| format!("may have mixed case, but should otherwise match: {why}"))
}

fn joined(reasons: Vec<String>) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join(","))
}
