//! How the names of objects are checked. What single texts may look like is in [`crate::api::text`].

pub use crate::api::text::*;
use crate::registry::NameRule;

/// Checks a name by the rule of its kind. Of a `generateName` (`prefix`) the last dash may be the end.
pub fn by_rule(rule: NameRule, name: &str, prefix: bool) -> Vec<String> {
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

/// What follows a generateName is alphanumeric, so a trailing dash will not be the end.
fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => format!("{stem}a"),
        _ => name.to_owned(),
    }
}
