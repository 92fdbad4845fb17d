//! Validates the names of objects. The formats of single texts are in [`crate::api::text`].

pub use crate::api::text::*;
use crate::registry::NameRule;

/// Validates a name by the rule of its kind. A `generateName` (`prefix`) may end with a dash.
pub fn validate_name(rule: NameRule, name: &str, prefix: bool) -> Vec<String> {
    let cut;
    let name = if prefix && rule != NameRule::PathSegment {
        cut = mask_trailing_dash(name);
        cut.as_str()
    } else {
        name
    };
    match rule {
        NameRule::Subdomain => subdomain(name),
        NameRule::Label => label(name),
        NameRule::Label1035 => label_1035(name),
        NameRule::PathSegment => path_segment(name, prefix),
    }
}

/// The suffix of a generateName is alphanumeric, so a trailing dash will not be the end.
fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => format!("{stem}a"),
        _ => name.to_owned(),
    }
}
