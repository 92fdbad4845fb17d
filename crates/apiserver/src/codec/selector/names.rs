//! What label keys and values must look like, in kube-apiserver's words.

const NAME_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
     character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
     '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
     start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What is wrong with a qualified name: the key of a label, `example.com/name`.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {NAME_RULE} {optional}")];
        }
        Some(("", name)) => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            wrong.extend(subdomain(prefix).iter().map(|why| format!("prefix part {why}")));
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_MAX {
        wrong.push(format!("name part must be no more than {NAME_MAX} bytes"));
    }
    if !is_name(name) {
        wrong.push(format!("name part {NAME_RULE}"));
    }
    wrong
}

/// What is wrong with the value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > NAME_MAX {
        wrong.push(format!("must be no more than {NAME_MAX} bytes"));
    }
    if !text.is_empty() && !is_name(text) {
        wrong.push(VALUE_RULE.to_owned());
    }
    wrong
}

/// What is wrong with a DNS subdomain.
pub fn subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        wrong.push(format!("must be no more than {SUBDOMAIN_MAX} bytes"));
    }
    if !text.split('.').all(is_dns_label) {
        wrong.push(SUBDOMAIN_RULE.to_owned());
    }
    wrong
}

fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    ends(text, inner) && text.bytes().all(|byte| inner(byte) || byte == b'-')
}

fn is_name(text: &str) -> bool {
    ends(text, |byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn ends(text: &str, good: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&first), Some(&last)) if good(first) && good(last))
}
