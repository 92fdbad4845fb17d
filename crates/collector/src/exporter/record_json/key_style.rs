//! Keys of attributes as the settings want them.

use std::borrow::Cow;

use kubewake_config::model::Dedot;

/// How many objects a key with dots is split into at most; the rest of the key keeps underscores. Elasticsearch and
/// OpenSearch refuse more than 20 levels by default, and a document has some of its own.
const MAX_KEY_LEVELS: usize = 16;

/// The key as it is written, or for nested objects as it is split. A key or a part of it is never empty, because
/// Elasticsearch refuses such names.
pub(crate) fn key_style(key: &[u8], dedot: Dedot) -> Cow<'_, [u8]> {
    match dedot {
        _ if key.is_empty() => Cow::Borrowed(b"_"),
        Dedot::None => Cow::Borrowed(key),
        Dedot::AllKeys => replaced(key, 0, |byte| byte == b'.'),
        Dedot::Kubernetes => match metadata_prefix(key) {
            Some(prefix) => replaced(key, prefix, |byte| matches!(byte, b'.' | b'/')),
            None => Cow::Borrowed(key),
        },
        Dedot::Nested => nested(key),
    }
}

/// The name of a label or an annotation of Kubernetes, without what precedes it in the key of its attribute.
pub(crate) fn label_style(name: &[u8], dedot: Dedot) -> Cow<'_, [u8]> {
    match dedot {
        Dedot::Kubernetes if !name.is_empty() => replaced(name, 0, |byte| matches!(byte, b'.' | b'/')),
        dedot => key_style(name, dedot),
    }
}

fn replaced(key: &[u8], from: usize, is_bad: impl Fn(u8) -> bool) -> Cow<'_, [u8]> {
    if !key.iter().skip(from).any(|byte| is_bad(*byte)) {
        return Cow::Borrowed(key);
    }
    let mut out = key.to_vec();
    out.iter_mut().skip(from).filter(|byte| is_bad(**byte)).for_each(|byte| *byte = b'_');
    Cow::Owned(out)
}

/// The length of `k8s.pod.label.` or its like, for labels and annotations of any kind.
fn metadata_prefix(key: &[u8]) -> Option<usize> {
    let mut parts = key.splitn(4, |byte| *byte == b'.');
    let (system, kind, map, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_map = matches!(map, b"label" | b"labels" | b"annotation" | b"annotations");
    (system == b"k8s" && !kind.is_empty() && is_map).then(|| key.len() - rest.len())
}

fn nested(key: &[u8]) -> Cow<'_, [u8]> {
    let levels = 1 + key.iter().filter(|byte| **byte == b'.').count();
    let has_empty_part = key.starts_with(b".") || key.ends_with(b".") || key.windows(2).any(|pair| pair == b"..");
    if levels <= MAX_KEY_LEVELS && !has_empty_part {
        return Cow::Borrowed(key);
    }
    let mut out = Vec::with_capacity(2 * key.len());
    for (level, part) in key.split(|byte| *byte == b'.').enumerate() {
        if level > 0 {
            out.push(if level < MAX_KEY_LEVELS { b'.' } else { b'_' });
        }
        out.extend_from_slice(if part.is_empty() && level < MAX_KEY_LEVELS { b"_" } else { part });
    }
    Cow::Owned(out)
}
