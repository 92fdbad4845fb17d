//! Names of images.

/// The limit of registries, without tag and digest.
const MAX_NAME_BYTES: usize = 255;

/// Why the name of an image is invalid; a valid one is `registry.example.com:5000/team/collector:v1@sha256:…`.
pub fn image_name_error(text: &str) -> Option<&'static str> {
    let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)));
    // A colon before the last slash belongs to a port.
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let colon = rest.get(last..).and_then(|last| last.find(':')).map(|at| last + at);
    let (name, tag) = colon.and_then(|at| Some((rest.get(..at)?, rest.get(at + 1..)))).unwrap_or((rest, None));
    let (registry, path) = match name.split_once('/') {
        Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (Some(first), path),
        _ => (None, name),
    };
    let faults = [
        (name.len() > MAX_NAME_BYTES, "has a name that is longer than 255 characters"),
        (
            !registry.is_none_or(is_registry),
            "has an invalid registry; write it as registry.example.com:5000/team/collector:v1",
        ),
        (
            !path.split('/').all(is_component),
            "is not a valid image name; use lower-case letters and digits, with `-`, `_` or `.` inside, and `/` between",
        ),
        (!tag.is_none_or(is_tag), "has an invalid tag; use at most 128 letters, digits, `_`, `-` and `.`"),
        (!digest.is_none_or(is_digest), "has an invalid digest; write it as sha256, a colon and 64 hexadecimal digits"),
    ];
    faults.into_iter().find(|(holds, _)| *holds).map(|(_, words)| words)
}

fn is_registry(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        let edges = !label.starts_with('-') && !label.ends_with('-');
        !label.is_empty() && edges && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    host.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_component(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inner = |c: char| edge(c) || matches!(c, '-' | '_' | '.');
    text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(inner)
        && !["..", "___", "._", "_.", "-.", ".-", "-_", "_-"].iter().any(|pair| text.contains(pair))
}

fn is_tag(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 128 && text.starts_with(word) && text.chars().all(|c| word(c) || matches!(c, '-' | '.'))
}

fn is_digest(text: &str) -> bool {
    let is_hex = |hex: &str| hex.len() == 64 && hex.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    text.strip_prefix("sha256:").is_some_and(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_as_registries_know_them() {
        let digest = format!("collector@sha256:{}", "0a".repeat(32));
        let good = [
            "collector",
            "kubewake/collector",
            "kubewake/collector:v1.2_3",
            "r.example.com:5000/a/b-c/d__e:x",
            "localhost/a",
            "localhost:5000/a",
            &digest,
        ];
        assert_eq!(good.map(image_name_error), [None; 7]);
        for (text, words) in [
            ("", "valid image name"),
            ("Kubewake/Collector", "valid image name"),
            ("kubewake collector", "valid image name"),
            ("https://kubewake/collector", "invalid registry"),
            ("a//b", "valid image name"),
            ("a/", "valid image name"),
            ("-a", "valid image name"),
            ("a..b", "valid image name"),
            ("a:", "invalid tag"),
            ("a:b c", "invalid tag"),
            ("a:b:c", "invalid tag"),
            ("a::b", "invalid tag"),
            ("a@sha256:12", "invalid digest"),
            ("r.example.com:x/a", "invalid registry"),
        ] {
            assert!(
                image_name_error(text).is_some_and(|fault| fault.contains(words)),
                "{text}: {:?}",
                image_name_error(text)
            );
        }
    }
}
