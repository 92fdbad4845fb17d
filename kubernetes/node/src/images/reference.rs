//! Image names, completed as by container runtimes.
//!
//! *Guaranteed*: a short name becomes the complete one that a kubelet and containerd use: `busybox` becomes
//! `docker.io/library/busybox:latest`, `team/web:1` becomes `docker.io/team/web:1`. Names that
//! `distribution/reference` rejects are rejected with the same message.

use std::fmt;

/// The registry of names without one.
const DEFAULT_REGISTRY: &str = "docker.io";
/// The former name of the same registry.
const LEGACY_DEFAULT_REGISTRY: &str = "index.docker.io";
/// The path prefix of the default registry for names of one component.
const OFFICIAL_PREFIX: &str = "library/";
const DEFAULT_TAG: &str = "latest";
const MAX_REPOSITORY_LENGTH: usize = 255;
const MAX_TAG_LENGTH: usize = 128;
/// Hexadecimal digits of a SHA-256 digest.
const SHA256_DIGITS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizedReference {
    repository: String,
    version: ImageVersion,
}

/// A tag or digest of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ImageVersion {
    Tag(String),
    Digest(String),
}

/// The reason why a text is not a valid image name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageReferenceError {
    #[error("invalid reference format")]
    Format,
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    Uppercase(String),
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Identifier(String),
    #[error("repository name must not be more than {MAX_REPOSITORY_LENGTH} characters")]
    Length,
    #[error("invalid checksum digest length")]
    DigestLength,
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
}

impl fmt::Display for NormalizedReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            ImageVersion::Tag(tag) => write!(f, "{}:{tag}", self.repository),
            ImageVersion::Digest(digest) => write!(f, "{}@{digest}", self.repository),
        }
    }
}

impl NormalizedReference {
    /// Parses and completes a name. A name with a digest loses its tag.
    ///
    /// # Errors
    /// If the text is not a valid image name.
    pub fn parse(text: &str) -> Result<Self, ImageReferenceError> {
        if is_hex(text, SHA256_DIGITS) {
            return Err(ImageReferenceError::Identifier(text.to_owned()));
        }
        let (registry, rest) = split_registry(text);
        let remote = rest.split(':').next().unwrap_or_default();
        if remote.chars().any(char::is_uppercase) {
            return Err(ImageReferenceError::Uppercase(remote.to_owned()));
        }
        let (rest, digest) = rest.split_once('@').map_or((rest.as_str(), None), |(rest, digest)| (rest, Some(digest)));
        let (path, tag) = rest.split_once(':').map_or((rest, None), |(path, tag)| (path, Some(tag)));
        if !is_registry(registry) || !path.split('/').all(is_path_component) || !tag.is_none_or(is_tag) {
            return Err(ImageReferenceError::Format);
        }
        let repository = format!("{registry}/{path}");
        if repository.len() > MAX_REPOSITORY_LENGTH {
            return Err(ImageReferenceError::Length);
        }
        let version = match digest {
            Some(digest) => ImageVersion::Digest(checked_digest(digest)?.to_owned()),
            None => ImageVersion::Tag(tag.unwrap_or(DEFAULT_TAG).to_owned()),
        };
        Ok(Self { repository, version })
    }

    /// The same repository with the digest of one of its images.
    #[must_use]
    pub fn with_digest(&self, digest: &str) -> Self {
        Self { repository: self.repository.clone(), version: ImageVersion::Digest(digest.to_owned()) }
    }
}

/// Splits a name into registry and path.
fn split_registry(text: &str) -> (&str, String) {
    let (registry, rest) = match text.split_once('/') {
        Some((first, rest)) if is_registry_like(first) => (first, rest),
        _ => (DEFAULT_REGISTRY, text),
    };
    let registry = if registry == LEGACY_DEFAULT_REGISTRY { DEFAULT_REGISTRY } else { registry };
    let is_official = registry == DEFAULT_REGISTRY && !rest.contains('/');
    (registry, if is_official { format!("{OFFICIAL_PREFIX}{rest}") } else { rest.to_owned() })
}

/// Whether the first component of a name is a registry and not part of the path.
fn is_registry_like(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.chars().any(char::is_uppercase)
}

fn is_registry(text: &str) -> bool {
    let is_label = |label: &str| {
        let has_edges = !label.starts_with('-') && !label.ends_with('-');
        !label.is_empty() && has_edges && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let is_port = |port: &str| !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
    if let Some((address, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_address = !address.is_empty() && address.chars().all(|c| c.is_ascii_hexdigit() || c == ':');
        return is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Lower-case letters and digits, separated by one `.`, one or two `_`, or any number of `-`.
fn is_path_component(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = text.split(is_word).filter(|separator| !separator.is_empty());
    let is_separator = |text: &str| matches!(text, "." | "_" | "__") || text.chars().all(|c| c == '-');
    text.starts_with(is_word) && text.ends_with(is_word) && separators.into_iter().all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= MAX_TAG_LENGTH
        && text.starts_with(is_word)
        && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn checked_digest(text: &str) -> Result<&str, ImageReferenceError> {
    let (algorithm, digits) = text.split_once(':').ok_or(ImageReferenceError::Format)?;
    if digits.len() < 32 || !digits.chars().all(|c| c.is_ascii_hexdigit()) || algorithm.is_empty() {
        return Err(ImageReferenceError::Format);
    }
    match algorithm {
        "sha256" if is_hex(digits, SHA256_DIGITS) => Ok(text),
        "sha256" => Err(ImageReferenceError::DigestLength),
        _ => Err(ImageReferenceError::DigestAlgorithm),
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(text: &str) -> String {
        NormalizedReference::parse(text)
            .map_or_else(|error| format!("error: {error}"), |reference| reference.to_string())
    }

    /// The completion of `distribution/reference` (its `TestParseDockerRef` and similar tests).
    #[test]
    fn names_are_completed_as_container_runtimes_do() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (short, complete) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1.36", "docker.io/library/busybox:1.36"),
            ("library/busybox", "docker.io/library/busybox:latest"),
            ("docker.io/busybox", "docker.io/library/busybox:latest"),
            ("index.docker.io/busybox", "docker.io/library/busybox:latest"),
            ("kubewake/operator", "docker.io/kubewake/operator:latest"),
            ("kubewake/operator:0.1.0", "docker.io/kubewake/operator:0.1.0"),
            ("docker.io/kubewake/operator:0.1.0", "docker.io/kubewake/operator:0.1.0"),
            ("localhost/operator", "localhost/operator:latest"),
            ("localhost:5000/operator:1", "localhost:5000/operator:1"),
            ("registry.example/kubewake/operator:0.1.0", "registry.example/kubewake/operator:0.1.0"),
            ("[::1]:5000/operator", "[::1]:5000/operator:latest"),
            ("gcr.io/library/busybox", "gcr.io/library/busybox:latest"),
            ("a__b/c---d.e_f", "docker.io/a__b/c---d.e_f:latest"),
        ] {
            assert_eq!(completed(short), complete);
            assert_eq!(completed(complete), complete, "what is complete stays as it is");
        }
        assert_eq!(completed(&format!("busybox:1@{digest}")), format!("docker.io/library/busybox@{digest}"));
    }

    #[test]
    fn malformed_names_are_refused_in_the_words_of_the_kubelet() {
        let not_lowercase = "invalid reference format: repository name (library/Not A Valid) must be lowercase";
        for (text, words) in [
            ("Not A Valid:Image", not_lowercase),
            ("", "invalid reference format"),
            ("a b", "invalid reference format"),
            ("a/", "invalid reference format"),
            ("a//b", "invalid reference format"),
            ("-a", "invalid reference format"),
            ("a..b", "invalid reference format"),
            ("a___b", "invalid reference format"),
            ("a:", "invalid reference format"),
            ("a:b:c", "invalid reference format"),
            ("https://a/b", "invalid reference format"),
            ("r.example:x/a", "invalid reference format"),
            ("a@sha256:12", "invalid reference format"),
            (&format!("a@sha256:{}", "0".repeat(40)), "invalid checksum digest length"),
            (&format!("a@md5:{}", "0".repeat(32)), "unsupported digest algorithm"),
            (&"a".repeat(250), "repository name must not be more than 255 characters"),
        ] {
            assert_eq!(completed(text), format!("error: {words}"), "{text}");
        }
        let identifier = "0a".repeat(32);
        assert!(completed(&identifier).contains("cannot specify 64-byte hexadecimal strings"));
    }
}
