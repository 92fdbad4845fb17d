//! The formats of names, label keys, label values and the like, with kube-apiserver's messages about
//! violations.
//!
//! Every function returns the violations; an empty list means valid.

const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const UNDERSCORE_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
'[a-z]([-a-z0-9]*[a-z0-9])?')";
const WILDCARD_MESSAGE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for \
validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED_NAME_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY_MESSAGE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const PERCENT_MESSAGE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
for validation is '[0-9]+%')";
const HTTP_HEADER_MESSAGE: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
validation is '[-A-Za-z0-9]+')";

pub const MAX_SUBDOMAIN_BYTES: usize = 253;
/// The longest DNS label, label value or name part of a label key.
pub const MAX_LABEL_BYTES: usize = 63;

/// A DNS-1123 label: `my-name`.
pub fn label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, MAX_LABEL_BYTES);
    if !is_label(name) {
        wrong.push(if is_subdomain(name) { "must not contain dots".to_owned() } else { LABEL_MESSAGE.to_owned() });
    }
    wrong
}

/// A DNS-1123 subdomain: `my.name`.
pub fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, MAX_SUBDOMAIN_BYTES);
    if !is_subdomain(name) {
        wrong.push(SUBDOMAIN_MESSAGE.to_owned());
    }
    wrong
}

/// A DNS-1123 subdomain that may have underscores, as search paths of DNS do.
pub fn subdomain_with_underscore(name: &str) -> Vec<String> {
    let is_part = |part: &str| {
        let rest = part.strip_prefix('_').unwrap_or(part);
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        !rest.starts_with(['-', '_']) && !rest.ends_with(['-', '_']) && !rest.is_empty() && rest.bytes().all(is_inner)
    };
    let mut wrong = too_long(name, MAX_SUBDOMAIN_BYTES);
    if !name.split('.').all(is_part) {
        wrong.push(UNDERSCORE_MESSAGE.to_owned());
    }
    wrong
}

/// A DNS-1035 label, which begins with a letter.
pub fn label_1035(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, MAX_LABEL_BYTES);
    if !(is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())) {
        wrong.push(LABEL_1035.to_owned());
    }
    wrong
}

/// A DNS-1123 subdomain after `*.`.
pub fn wildcard_subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, MAX_SUBDOMAIN_BYTES);
    if !name.strip_prefix("*.").is_some_and(is_subdomain) {
        wrong.push(WILDCARD_MESSAGE.to_owned());
    }
    wrong
}

/// A path segment. The rules for a whole name do not apply to a prefix.
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    let bad = ["/", "%"].into_iter().filter(|bad| name.contains(bad));
    bad.map(|bad| format!("may not contain '{bad}'")).collect()
}

/// A label key, an annotation key, a finalizer: `name` or `example.com/name`.
pub fn qualified(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        ["", name] => {
            wrong.push("prefix part must be non-empty".to_owned());
            *name
        }
        [prefix, name] => {
            if prefix.len() > MAX_SUBDOMAIN_BYTES {
                wrong.push(format!("prefix part must be no more than {MAX_SUBDOMAIN_BYTES} bytes"));
            }
            if !is_subdomain(prefix) {
                wrong.push(format!("prefix part {SUBDOMAIN_MESSAGE}"));
            }
            *name
        }
        _ => {
            let rest = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {QUALIFIED_NAME_MESSAGE} {rest}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL_BYTES {
        wrong.push(format!("name part must be no more than {MAX_LABEL_BYTES} bytes"));
    }
    if !is_key_name(name) {
        wrong.push(format!("name part {QUALIFIED_NAME_MESSAGE}"));
    }
    wrong
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > MAX_LABEL_BYTES {
        wrong.push(format!("must be no more than {MAX_LABEL_BYTES} bytes"));
    }
    if !value.is_empty() && !is_key_name(value) {
        wrong.push(LABEL_VALUE_MESSAGE.to_owned());
    }
    wrong
}

/// A key of a ConfigMap or Secret.
pub fn config_key(key: &str) -> Vec<String> {
    let mut wrong = too_long(key, MAX_SUBDOMAIN_BYTES);
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        wrong.push(CONFIG_KEY_MESSAGE.to_owned());
    } else if key == "." {
        wrong.push("must not be '.'".to_owned());
    } else if key == ".." {
        wrong.push("must not be '..'".to_owned());
    } else if key.starts_with("..") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

/// The name of an environment variable: any printable ASCII but `=`.
pub fn env_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    let good = name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    let words = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    if good { Vec::new() } else { vec![words.to_owned()] }
}

/// The name of a port: at most fifteen lower case characters, including a letter.
pub fn port_name(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, 15);
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// The number of a port.
pub fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number between two bounds, inclusive.
pub fn in_range(number: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&number) {
        return Vec::new();
    }
    vec![format!("must be between {low} and {high}, inclusive")]
}

/// `25%`
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty());
    let good = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if good { Vec::new() } else { vec![PERCENT_MESSAGE.to_owned()] }
}

/// The name of an HTTP header.
pub fn http_header(name: &str) -> Vec<String> {
    let good = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if good { Vec::new() } else { vec![HTTP_HEADER_MESSAGE.to_owned()] }
}

/// Whether this is a DNS-1123 label, of any length.
pub fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Whether this is a DNS-1123 subdomain, of any length.
pub fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_key_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().copied().all(inner)
}

fn too_long(name: &str, max: usize) -> Vec<String> {
    if name.len() <= max {
        return Vec::new();
    }
    vec![format!("must be no more than {max} characters")]
}
