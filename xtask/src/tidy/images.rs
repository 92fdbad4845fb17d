//! Names of images: manifests and documents must agree with `crates/release`.
//!
//! *Guaranteed*: a manifest uses the complete name of an image with the tag of this version, and sets a pull
//! policy; no document names another version. Images in a user's own registry have the tag of this version,
//! too.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use kubewake_release::{ReleaseImage, VERSION, pull_policy};

use super::documents::find_files;
use crate::workspace_root;

/// All violations, with their positions.
pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (folder, extension, judge) in [
        ("deploy", "yaml", check_manifest as fn(&str) -> Vec<String>),
        ("examples", "yaml", check_manifest),
        ("", "md", check_tags),
        ("deploy", "Containerfile", check_tags),
    ] {
        let mut files: Vec<PathBuf> = Vec::new();
        find_files(&workspace_root().join(folder), extension, &mut files)?;
        for file in files {
            let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
            let name = file.strip_prefix(workspace_root()).unwrap_or(Path::new("")).display().to_string();
            wrong.extend(judge(&text).into_iter().map(|problem| format!("{name}:{problem}")));
        }
    }
    Ok(wrong)
}

/// Checks that images of containers are complete, of this version, and have the right pull policy.
fn check_manifest(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut problems = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some((name, image)) = line.strip_prefix("image: ").and_then(|image| Some((our_image(image)?, image)))
        else {
            continue;
        };
        if image != name.reference() {
            problems.push(format!("{}: the image is {}, not {image}", number + 1, name.reference()));
        }
        let policy = format!("imagePullPolicy: {}", pull_policy(name.reference()));
        if lines.get(number + 1) != Some(&policy.as_str()) {
            problems.push(format!("{}: the line after the image must be {policy:?}", number + 1));
        }
    }
    problems
}

/// Checks the tags in any text.
fn check_tags(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._:/@-".contains(c);
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words = line.split(|c: char| !is_part(c)).map(|word| word.trim_end_matches(['.', ':']));
        for word in words.filter(|word| our_image(word).is_some()) {
            let tag = word.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
            if tag.is_some_and(|tag| tag != VERSION) {
                problems.push(format!("{}: {word} differs from version {VERSION}", number + 1));
            }
        }
        let tag = line.split_once("newTag: ").map(|(_, rest)| rest.trim_end_matches(['}', ']']));
        if let Some(tag) = tag.filter(|tag| *tag != VERSION) {
            problems.push(format!("{}: newTag {tag} differs from version {VERSION}", number + 1));
        }
    }
    problems
}

/// The image that a name refers to: `[REGISTRY/]kubewake/NAME[:TAG]`.
fn our_image(name: &str) -> Option<ReleaseImage> {
    let (folder, last) = name.rsplit_once('/')?;
    let last = last.split([':', '@']).next()?;
    let is_ours = folder == "kubewake" || folder.ends_with("/kubewake");
    ReleaseImage::ALL.into_iter().find(|image| is_ours && image.name() == last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_that_differs_from_the_release_is_found() {
        let good =
            format!("        image: {}\n        imagePullPolicy: IfNotPresent\n", ReleaseImage::Operator.reference());
        assert_eq!(check_manifest(&good), Vec::<String>::new());
        assert_eq!(check_manifest("  image: kubewake/operator\n").len(), 2, "no version and no policy");
        assert_eq!(check_manifest(&good.replace(VERSION, "9.9.9")).len(), 1);
        assert_eq!(check_manifest(&good.replace("IfNotPresent", "Always")).len(), 1);
        assert_eq!(check_manifest("  image: busybox\n"), Vec::<String>::new(), "it is not ours");
    }

    #[test]
    fn document_that_names_another_version_is_found() {
        let of = |tag: &str| format!("load `docker.io/kubewake/collector:{tag}`. newTag: {tag}}}]");
        assert_eq!(check_tags(&of(VERSION)), Vec::<String>::new());
        assert_eq!(check_tags(&of("9.9.9")).len(), 2);
        assert_eq!(
            check_tags("crates/kubewake/collector.order, https://github.com/kubewake/kubewake"),
            Vec::<String>::new()
        );
        assert_eq!(check_tags("images are called kubewake/collector: that is all"), Vec::<String>::new());
    }
}
