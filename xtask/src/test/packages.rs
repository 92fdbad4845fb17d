//! Debian packages that the tests use.

use std::process::Command;

use anyhow::bail;

use crate::steps::{output, run, succeeds};

/// A package, and a command that ends well when what it brings is there.
const NEEDED: [(&str, &str, &[&str]); 3] = [
    ("curl", "curl", &["--version"]),
    ("python3", "python3", &["--version"]),
    // Debian splits the module that a virtual environment needs from Python itself.
    ("python3-venv", "python3", &["-c", "import ensurepip, venv"]),
];

/// Installs what is missing, or says what to install.
pub(crate) fn install() -> anyhow::Result<()> {
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(_, program, args)| !succeeds(program, args)).map(|(package, ..)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !can_install() {
        bail!("please install {} (on Debian: apt-get install {})", missing.join(", "), missing.join(" "));
    }
    run(Command::new("apt-get").args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(&missing);
    run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}

fn can_install() -> bool {
    output("id", &["-u"]).is_ok_and(|user| user == "0") && succeeds("apt-get", &["--version"])
}
