//! Validation of names in Kubernetes. Text that becomes part of a path of the API server is checked here first,
//! because anybody who can send a query or a span can choose it.

pub(super) fn is_namespace(text: &str) -> bool {
    is_label(text)
}

/// Whether this can be the `apiVersion` and the kind of a served resource.
pub(super) fn is_kind(api_version: &str, kind: &str) -> bool {
    let is_version = match api_version.split_once('/') {
        Some((group, version)) => group.len() <= 253 && group.split('.').all(is_label) && is_label(version),
        None => is_label(api_version),
    };
    is_version && is_label(&kind.to_ascii_lowercase())
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that would change the path.
    const HOSTILE: [&str; 11] =
        ["", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "a b", "a\nb", "-a", "kube-system/secrets?x="];

    #[test]
    fn only_names_go_into_paths() {
        assert!(is_namespace("kube-system") && is_namespace("0") && is_namespace(&"a".repeat(63)));
        assert!(!is_namespace("Default") && !is_namespace("é") && !is_namespace(&"a".repeat(64)));
        for (version, kind) in [("v1", "Pod"), ("apps/v1", "Deployment"), ("a.example-b.io/v1alpha1", "Head2")] {
            assert!(is_kind(version, kind), "{version} {kind}");
        }
        for bad in HOSTILE {
            assert!(!is_namespace(bad), "{bad}");
            assert!(!is_kind("v1", bad) && (!is_kind(bad, "Pod") || bad == "a/b"), "{bad}");
            assert!(!is_kind(&format!("apps/{bad}"), "Pod") && !is_kind(&format!("{bad}/v1"), "Pod"), "{bad}");
        }
        assert!(!is_kind("apps/v1/namespaces", "Pod") && !is_kind("a..b/v1", "Pod"));
    }
}
