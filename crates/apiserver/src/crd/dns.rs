//! Names as DNS has them, with apimachinery's messages.

use std::sync::LazyLock;

use regex::Regex;

const LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// Why a text is no DNS-1035 label, all reasons in one.
pub(crate) fn label(text: &str) -> Option<String> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| whole(LABEL));
    let why = format!(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
         and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{LABEL}')"
    );
    reasons(text, 63, PATTERN.as_ref(), why)
}

/// Why a text is no DNS-1123 subdomain, all reasons in one.
pub(crate) fn subdomain(text: &str) -> Option<String> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| whole(SUBDOMAIN));
    let why = format!(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end \
         with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
    );
    reasons(text, 253, PATTERN.as_ref(), why)
}

/// Why a text is no kind.
pub(crate) fn kind(text: &str) -> Option<String> {
    let why = label(&text.to_lowercase())?;
    Some(format!("may have mixed case, but should otherwise match: {why}"))
}

fn reasons(text: &str, max: usize, pattern: Option<&Regex>, why: String) -> Option<String> {
    let long = (text.len() > max).then(|| format!("must be no more than {max} bytes"));
    let wrong = pattern.is_none_or(|pattern| !pattern.is_match(text)).then_some(why);
    let all: Vec<String> = long.into_iter().chain(wrong).collect();
    (!all.is_empty()).then(|| all.join(","))
}

fn whole(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^{pattern}$")).ok()
}
