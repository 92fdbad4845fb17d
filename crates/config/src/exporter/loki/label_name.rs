//! Names of labels.

/// The longest name of a label that Loki accepts by default, in bytes.
const MAX_LABEL_NAME_BYTES: usize = 1024;

/// What is wrong with a name.
pub(super) fn fault(name: &str) -> Option<&'static str> {
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() {
        Some("is empty")
    } else if name.starts_with("__") {
        Some("begins with __, which is reserved")
    } else if !is_name(name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("is not a name of a label")
    } else if name.len() > MAX_LABEL_NAME_BYTES {
        Some("is longer than 1024 bytes")
    } else {
        None
    }
}

/// The label of an attribute: what is no letter and no digit becomes `_`.
pub(super) fn from_attribute(key: &str) -> String {
    key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
