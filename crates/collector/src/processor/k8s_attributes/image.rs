//! Names of container images.

/// An image reference taken apart: `registry.example/team/shop:1.2@sha256:…`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ImageReference<'a> {
    pub(super) name: &'a str,
    pub(super) tag: Option<&'a str>,
    pub(super) digest: Option<&'a str>,
}

impl<'a> ImageReference<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the port of the registry.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        Self { name, tag: tag.filter(|tag| !tag.is_empty()), digest }
    }

    /// The tag; `latest` for an image with neither tag nor digest.
    pub(super) fn tag_or_latest(&self) -> Option<&'a str> {
        self.tag.or(self.digest.is_none().then_some("latest"))
    }

    /// The service version that the image stands for.
    pub(super) fn version(&self) -> Option<String> {
        match (self.tag, self.digest) {
            (Some(tag), Some(digest)) => Some(format!("{tag}@{digest}")),
            (tag, digest) => tag.or(digest).map(str::to_owned),
        }
    }

    /// The canonical reference (by digest), from the container runtime's name of the running image.
    pub(super) fn canonical(runtime: &str) -> Option<String> {
        let text = runtime.strip_prefix("docker-pullable://").unwrap_or(runtime);
        let image = ImageReference::parse(text);
        let digest = image.digest.filter(|_| !image.name.is_empty())?;
        Some(format!("{}@{digest}", image.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_taken_apart() {
        let image = |name, tag, digest| ImageReference { name, tag, digest };
        assert_eq!(ImageReference::parse("shop"), image("shop", None, None));
        assert_eq!(ImageReference::parse("shop:1.2"), image("shop", Some("1.2"), None));
        assert_eq!(ImageReference::parse("localhost:5000/shop"), image("localhost:5000/shop", None, None));
        assert_eq!(
            ImageReference::parse("r.io:5000/a/b:v1@sha256:ab"),
            image("r.io:5000/a/b", Some("v1"), Some("sha256:ab"))
        );
        assert_eq!(ImageReference::parse("shop").tag_or_latest(), Some("latest"));
        assert_eq!(ImageReference::parse("shop@sha256:ab").tag_or_latest(), None);
        assert_eq!(ImageReference::parse("shop:1@sha256:ab").version().as_deref(), Some("1@sha256:ab"));
        assert_eq!(ImageReference::parse("shop").version(), None);
    }

    #[test]
    fn what_runs_is_named_by_its_digest() {
        let canonical = |text| ImageReference::canonical(text);
        assert_eq!(canonical("docker-pullable://r.io/a@sha256:ab").as_deref(), Some("r.io/a@sha256:ab"));
        assert_eq!(canonical("r.io/a:1@sha256:ab").as_deref(), Some("r.io/a@sha256:ab"));
        assert_eq!(canonical("sha256:ab"), None);
    }
}
