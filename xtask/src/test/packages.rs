//! Debian packages that the tests use.

use std::process::Command;

use anyhow::bail;

use crate::steps::{output, run, succeeds};

/// A package, and a command that ends well when what it brings is there.
const NEEDED: [(&str, &str, &[&str]); 6] = [
    ("curl", "curl", &["--version"]),
    ("python3", "python3", &["--version"]),
    // Debian splits the module that a virtual environment needs from Python itself.
    ("python3-venv", "python3", &["-c", "import ensurepip, venv"]),
    // For the page of the viewer: its modules alone, and all of it in a browser as a person sees it.
    ("nodejs", "node", &["--version"]),
    ("chromium", "chromium", &["--version"]),
    ("chromium-driver", "chromedriver", &["--version"]),
];

/// The same for what stories do without, saying so.
const WELCOME: [(&str, &str, &[&str]); 1] = [("kubernetes-client", "kubectl", &["version", "--client"])];

/// Installs what is missing, or says what to install.
pub(crate) fn install() -> anyhow::Result<()> {
    let (needed, welcome) = (missing(&NEEDED), missing(&WELCOME));
    if needed.is_empty() && welcome.is_empty() {
        return Ok(());
    }
    if can_install() {
        run(Command::new("apt-get").args(["update", "--quiet"]))?;
    } else if !needed.is_empty() {
        bail!("please install {} (on Debian: apt-get install {})", needed.join(", "), needed.join(" "));
    }
    if !needed.is_empty() {
        get(&needed)?;
    }
    // Not every Debian has it.
    let installed = welcome.is_empty() || (can_install() && get(&welcome).is_ok());
    if !installed {
        eprintln!("without {}, some stories are skipped", welcome.join(", "));
    }
    Ok(())
}

fn missing(packages: &[(&'static str, &str, &[&str])]) -> Vec<&'static str> {
    packages.iter().filter(|(_, program, args)| !succeeds(program, args)).map(|(package, ..)| *package).collect()
}

fn get(packages: &[&str]) -> anyhow::Result<()> {
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
    run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}

fn can_install() -> bool {
    output("id", &["-u"]).is_ok_and(|user| user == "0") && succeeds("apt-get", &["--version"])
}
