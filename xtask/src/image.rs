//! `cargo xtask image`: images that hold one program and nothing else, made without a container runtime.
//!
//! An image is a root file system ([`root_fs`]) and a few words on how to run it; [`oci`] packs both as the archive that every runtime loads. The recipes in
//! `deploy/images` make the same from the same root file system, for who builds with containers.
//!
//! *Guaranteed*: the program is linked statically and has only the commands and components that its features select; beside it there are the authorities of
//! the machine that builds, and a user without rights. The same inputs make the same bytes.
//!
//! *Not done*: other architectures than the one of this machine, and signatures.

mod oci;
mod root_fs;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::ValueEnum;

use crate::{
    steps::{cargo, run as run_command},
    target,
};

/// The programs that have an image.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Image {
    /// The data plane, alone
    Collector,
    /// The control plane
    Operator,
    /// The admission webhook that puts trace context on objects
    Webhook,
}

/// Arguments of `cargo xtask image`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask image collector                              target/images/collector.tar, for `docker load` and its kin
  cargo xtask image collector --tag registry.example/collector:1 --output collector.tar
  cargo xtask image collector --features receiver-otlp,exporter-otlp,extension-health-check
  cargo xtask image collector --list                       what is in it")]
pub(crate) struct Args {
    /// Of which program
    image: Image,
    /// What it is called [default: kubewake/NAME and the version]
    #[arg(long, value_name = "NAME:TAG")]
    tag: Option<String>,
    /// Where it goes: an archive if it ends with .tar, else a directory with the root file system [default: target/images/NAME.tar]
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// What is in the program: features of the package `kubewake`, with commas between them [default: all of the image's]
    #[arg(long, value_name = "FEATURES")]
    features: Option<String>,
    /// Prints what is in the image, a file a line
    #[arg(long)]
    list: bool,
    /// Without optimisation, which is made faster: for tests
    #[arg(long)]
    dev: bool,
}

impl Image {
    /// Its last name, the command that it runs, and the feature that brings it.
    fn name(self) -> &'static str {
        match self {
            Self::Collector => "collector",
            Self::Operator => "operator",
            Self::Webhook => "webhook",
        }
    }
}

/// Builds and writes an image.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let name = args.image.name();
    let program = build(args.features.as_deref().unwrap_or(name), args.dev)?;
    let output = args.output.clone().unwrap_or_else(|| directory().join(format!("{name}.tar")));
    let is_archive = output.extension().is_some_and(|extension| extension == "tar");
    let root = if is_archive { directory().join(name) } else { output.clone() };
    root_fs::write(&root, &program)?;
    if is_archive {
        let tag = args.tag.clone().unwrap_or_else(|| format!("kubewake/{name}:{}", env!("CARGO_PKG_VERSION")));
        oci::write(&output, &root, &oci::About { tag: &tag, command: name, user: root_fs::USER })?;
    }
    if args.list {
        root_fs::list(&root)?.iter().for_each(|line| println!("{line}"));
    } else {
        println!("{}", output.display());
    }
    Ok(())
}

/// What the tests look at: the collector's image, as a directory.
pub(crate) fn for_tests() -> anyhow::Result<PathBuf> {
    let root = directory().join("tested/collector");
    root_fs::write(&root, &build(Image::Collector.name(), true)?)?;
    Ok(root)
}

fn directory() -> PathBuf {
    target().join("images")
}

/// Linked with everything it needs, so that it runs where there is nothing else. The target is named, since procedural macros, which the compiler loads,
/// cannot be linked so.
fn build(features: &str, dev: bool) -> anyhow::Result<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = cargo();
    command.args(["build", "--locked", "--package", "kubewake", "--no-default-features", "--features", features]);
    command.args(["--target", &triple]).env("RUSTFLAGS", "-C target-feature=+crt-static");
    // A panic still names its function; lines are for who builds it himself.
    command.env("CARGO_PROFILE_IMAGE_STRIP", "debuginfo").env("CARGO_PROFILE_DEV_DEBUG", "0");
    let (profile, folder) = if dev { ("dev", "debug") } else { ("image", "image") };
    command.args(["--profile", profile]);
    run_command(&mut command)?;
    let program = target().join(triple).join(folder).join("kubewake");
    let is_static = !fs::read(&program).map(|bytes| needs_loader(&bytes)).context("there is no program")?;
    ensure!(is_static, "{} is not linked statically: is there a libc.a on this machine?", program.display());
    Ok(program)
}

/// Whether an ELF file names a loader, which an image does not have.
fn needs_loader(elf: &[u8]) -> bool {
    let loader = b"/ld-linux";
    elf.windows(loader.len()).take(LOADER_WITHIN).any(|window| window == loader)
}

/// The name of the loader stands right behind the headers.
const LOADER_WITHIN: usize = 4096;

/// A path as it is told to people and programs.
fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not text", path.display()))
}
