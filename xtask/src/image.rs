//! `cargo xtask image`: images that hold one program and nothing else, made without a container runtime.
//!
//! An image is a root file system ([`root_fs`]) and a configuration; [`oci`] packs both into an archive that
//! every runtime loads. The recipes in `deploy/images` build the same image from the same root file system with
//! a container runtime.
//!
//! *Guaranteed*: the program is linked statically and has only the commands and components that its features
//! select; beside it there are the authorities of the machine that builds, a user without rights, and a bill of
//! materials ([`sbom`]), which is also beside the archive. The same inputs make the same bytes.
//!
//! *Not done*: other architectures than the one of this machine, and signatures.

mod elf;
mod oci;
mod root_fs;
mod sbom;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use kubewake_release::ReleaseImage;

use crate::{
    steps::{cargo, run as run_command},
    target_dir,
};

/// What an image is made of.
struct ImageRecipe {
    /// The package of its program.
    package: &'static str,
    /// The program, which is at the root of the image.
    program: &'static str,
    /// The features that bring what it runs, and nothing else. An example has none.
    features: Option<&'static str>,
    /// The arguments that come before those of a container.
    args: &'static [&'static str],
}

impl ImageRecipe {
    fn from_image(image: ReleaseImage) -> Self {
        let ours = |name: &'static str, args: &'static [&'static str]| Self {
            package: "kubewake",
            program: "kubewake",
            features: Some(name),
            args,
        };
        let example = |package: &'static str| Self { package, program: image.name(), features: None, args: &[] };
        match image {
            ReleaseImage::Collector => ours("collector", &["collector"]),
            ReleaseImage::Operator => ours("operator", &["operator"]),
            ReleaseImage::Webhook => ours("webhook", &["webhook"]),
            ReleaseImage::HeadOperator => example("kubewake-example-head-operator"),
            ReleaseImage::DemoScheduler => example("kubewake-example-scheduler"),
        }
    }

    /// What a container of it runs.
    fn entry_point(&self) -> Vec<String> {
        let program = format!("/{}", self.program);
        std::iter::once(program).chain(self.args.iter().map(|arg| (*arg).to_owned())).collect()
    }
}

/// The packages of the images and their features, where they have some.
pub(crate) fn feature_sets() -> Vec<(&'static str, &'static str)> {
    let recipes = ReleaseImage::ALL.into_iter().map(ImageRecipe::from_image);
    recipes.filter_map(|recipe| Some((recipe.package, recipe.features?))).collect()
}

fn parse_image_name(name: &str) -> Result<ReleaseImage, String> {
    let names = || ReleaseImage::ALL.map(ReleaseImage::name).join(", ");
    ReleaseImage::ALL
        .into_iter()
        .find(|image| image.name() == name)
        .ok_or_else(|| format!("unknown image; known images are {}", names()))
}

/// Arguments of `cargo xtask image`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask image collector                              target/images/collector.tar, for `docker load` and similar commands
  cargo xtask image collector --tag registry.example/collector:1 --output collector.tar
  cargo xtask image head-operator
  cargo xtask image collector --features receiver-otlp,exporter-otlp,extension-health-check
  cargo xtask image collector --list                       files of the image")]
pub(crate) struct ImageArgs {
    /// The program: collector, operator, webhook, or an example: head-operator, demo-scheduler
    #[arg(value_parser = parse_image_name)]
    image: ReleaseImage,
    /// Complete name of the image [default: docker.io/kubewake/NAME and the version]
    #[arg(long, value_name = "REGISTRY/NAME:TAG", value_parser = validate_tag)]
    tag: Option<String>,
    /// Output path: an archive if it ends with .tar, else a directory with the root file system [default:
    /// target/images/NAME.tar]
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Features of the package `kubewake` in the program, separated by commas [default: all features of
    /// the image]
    #[arg(long, value_name = "FEATURES")]
    features: Option<String>,
    /// Print the files of the image, one per line
    #[arg(long)]
    list: bool,
    /// Build without optimisation, which is faster: for tests
    #[arg(long)]
    dev: bool,
}

/// A name that no runtime completes in a way of its own: containerd stores names as they are, and kubelets ask
/// for complete ones; podman would make another of it than docker.
fn validate_tag(tag: &str) -> Result<String, String> {
    let registry = tag.split('/').next().filter(|first| *first != tag).unwrap_or_default();
    let has_registry = registry.contains(['.', ':']) || registry == "localhost";
    let has_tag = tag.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if has_registry && has_tag {
        Ok(tag.to_owned())
    } else {
        Err("the name of the image is not complete: write REGISTRY/NAME:TAG, such as docker.io/team/collector:1"
            .to_owned())
    }
}

/// Builds and writes an image.
pub(crate) fn run(args: &ImageArgs) -> anyhow::Result<()> {
    let name = args.image.name();
    let recipe = ImageRecipe::from_image(args.image);
    ensure!(args.features.is_none() || recipe.features.is_some(), "--features does not apply to examples");
    let program = build(&recipe, args.features.as_deref(), args.dev)?;
    let output = args.output.clone().unwrap_or_else(|| directory().join(format!("{name}.tar")));
    let is_archive = output.extension().is_some_and(|extension| extension == "tar");
    let root = if is_archive { directory().join(name) } else { output.clone() };
    let tag = args.tag.as_deref().unwrap_or(args.image.reference());
    let materials = sbom::build_sbom(tag, &recipe, args.features.as_deref())?;
    root_fs::write(&root, &program, &materials)?;
    if is_archive {
        write_archive(&output, &root, tag, &recipe)?;
        let beside = output.with_extension("sbom.cdx.json");
        fs::copy(root.join(sbom::SBOM_PATH), &beside)
            .with_context(|| format!("failed to write {}", beside.display()))?;
    }
    if args.list {
        root_fs::list(&root)?.iter().for_each(|line| println!("{line}"));
    } else {
        println!("{}", output.display());
    }
    Ok(())
}

fn write_archive(output: &Path, root: &Path, tag: &str, recipe: &ImageRecipe) -> anyhow::Result<()> {
    oci::write(output, root, &oci::ImageDescription { tag, entry_point: &recipe.entry_point(), user: root_fs::USER })
}

/// How large an image is, in bytes.
pub(crate) struct ImageSize {
    pub(crate) name: &'static str,
    pub(crate) program: u64,
    pub(crate) archive: u64,
}

/// Makes all images, and measures them.
pub(crate) fn measure_sizes() -> anyhow::Result<Vec<ImageSize>> {
    let size = |image: ReleaseImage| {
        run(&ImageArgs { image, tag: None, output: None, features: None, list: false, dev: false })?;
        let bytes =
            |path: PathBuf| fs::metadata(&path).map(|file| file.len()).with_context(|| path.display().to_string());
        let name = image.name();
        let recipe = ImageRecipe::from_image(image);
        let program = bytes(directory().join(name).join(recipe.program))?;
        Ok(ImageSize { name, program, archive: bytes(directory().join(format!("{name}.tar")))? })
    };
    ReleaseImage::ALL.into_iter().map(size).collect()
}

/// What the tests look at: the collector's image as a directory, and a directory with archives of all images.
pub(crate) struct TestImages {
    pub(crate) collector: PathBuf,
    pub(crate) archives: PathBuf,
}

/// Makes them. The archives are named and packed as those of a release, so that what is said of an install can
/// be tried. Only the collector's has the program that an image has; those of others call the one that the
/// tests run, as to link each of them takes minutes.
pub(crate) fn build_for_tests() -> anyhow::Result<TestImages> {
    let folder = directory().join("tested");
    let images = TestImages { collector: folder.join("collector"), archives: folder.join("archives") };
    for image in ReleaseImage::ALL {
        let recipe = ImageRecipe::from_image(image);
        let root = folder.join(image.name());
        let program = match image {
            ReleaseImage::Collector => build(&recipe, None, true)?,
            _ => write_launcher(&folder, &recipe)?,
        };
        root_fs::write(&root, &program, &sbom::build_sbom(image.reference(), &recipe, None)?)?;
        write_archive(&images.archives.join(format!("{}.tar", image.name())), &root, image.reference(), &recipe)?;
    }
    Ok(images)
}

/// A script that runs the program that cargo has built for tests.
fn write_launcher(folder: &Path, recipe: &ImageRecipe) -> anyhow::Result<PathBuf> {
    let program = std::path::absolute(target_dir().join("debug").join(recipe.program))?;
    let script = folder.join("programs").join(recipe.program);
    fs::create_dir_all(folder.join("programs"))?;
    fs::write(&script, format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display()))?;
    Ok(script)
}

fn directory() -> PathBuf {
    target_dir().join("images")
}

/// Linked with everything it needs, so that it runs where there is nothing else. The target is named, since
/// procedural macros, which the compiler loads, cannot be linked so.
fn build(recipe: &ImageRecipe, features: Option<&str>, dev: bool) -> anyhow::Result<PathBuf> {
    let triple = target_triple();
    let mut command = cargo();
    command.args(["build", "--locked", "--package", recipe.package, "--bin", recipe.program]);
    if let Some(features) = features.or(recipe.features) {
        command.args(["--no-default-features", "--features", features]);
    }
    // Debug information is removed here rather than by the profile: cargo ignores `strip` for a package with
    // settings of its own, as `kubewake` has. A panic still names its functions.
    command.args(["--target", &triple]).env("RUSTFLAGS", "-C target-feature=+crt-static -C strip=debuginfo");
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    let (profile, folder) = if dev { ("dev", "debug") } else { ("image", "image") };
    command.args(["--profile", profile]);
    run_command(&mut command)?;
    let program = target_dir().join(triple).join(folder).join(recipe.program);
    let elf = fs::read(&program).context("the build produced no program")?;
    ensure!(!needs_loader(&elf), "{} is not linked statically: is there a libc.a on this machine?", program.display());
    let debug = elf::debug_sections(&elf).with_context(|| format!("{} is not an ELF file", program.display()))?;
    ensure!(debug.is_empty(), "{} has debug information: {}", program.display(), debug.join(", "));
    Ok(program)
}

/// What images are built for.
fn target_triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Whether an ELF file names a loader, which an image does not have.
fn needs_loader(elf: &[u8]) -> bool {
    let loader = b"/ld-linux";
    elf.windows(loader.len()).take(LOADER_SEARCH_BYTES).any(|window| window == loader)
}

/// The name of the loader stands right behind the headers.
const LOADER_SEARCH_BYTES: usize = 4096;

/// A path as it is told to people and programs.
fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nodes_would_not_find_are_refused() {
        for image in ReleaseImage::ALL {
            assert_eq!(validate_tag(image.reference()).as_deref(), Ok(image.reference()));
        }
        for tag in ["registry.example/collector:1", "localhost:5000/collector:1", "localhost/collector:1"] {
            assert!(validate_tag(tag).is_ok(), "{tag}");
        }
        for tag in ["collector:1", "kubewake/collector:1", "docker.io/kubewake/collector", "localhost:5000/collector"] {
            assert!(validate_tag(tag).unwrap_err().contains("REGISTRY/NAME:TAG"), "{tag}");
        }
    }

    #[test]
    fn entry_points_name_the_program_and_its_command() {
        assert_eq!(ImageRecipe::from_image(ReleaseImage::Operator).entry_point(), ["/kubewake", "operator"]);
        assert_eq!(ImageRecipe::from_image(ReleaseImage::HeadOperator).entry_point(), ["/head-operator"]);
    }
}
