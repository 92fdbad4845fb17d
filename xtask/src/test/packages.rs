//! Debian packages that the tests need.

use std::process::Command;

use anyhow::bail;

use crate::steps::{command_output, command_succeeds, run};

/// A package, and a command that succeeds when it is installed.
const REQUIRED_PACKAGES: [(&str, &str, &[&str]); 6] = [
    ("curl", "curl", &["--version"]),
    ("python3", "python3", &["--version"]),
    // Debian splits the module that a virtual environment needs from Python itself.
    ("python3-venv", "python3", &["-c", "import ensurepip, venv"]),
    // For tests of the viewer's page: of its modules, and of the whole page in a browser.
    ("nodejs", "node", &["--version"]),
    ("chromium", "chromium", &["--version"]),
    ("chromium-driver", "chromedriver", &["--version"]),
];

/// The same for packages without which stories are skipped with a note.
const OPTIONAL_PACKAGES: [(&str, &str, &[&str]); 1] = [("kubernetes-client", "kubectl", &["version", "--client"])];

/// Installs missing packages, or fails with a list of them.
pub(crate) fn install() -> anyhow::Result<()> {
    let needed = missing_packages(&REQUIRED_PACKAGES);
    let welcome = missing_packages(&OPTIONAL_PACKAGES);
    if needed.is_empty() && welcome.is_empty() {
        return Ok(());
    }
    if can_install() {
        run(Command::new("apt-get").args(["update", "--quiet"]))?;
    } else if !needed.is_empty() {
        bail!(
            "packages are missing, and may not be installed here: install {} (on Debian: apt-get install {})",
            needed.join(", "),
            needed.join(" ")
        );
    }
    if !needed.is_empty() {
        install_packages(&needed)?;
    }
    // Some Debian versions lack it.
    let installed = welcome.is_empty() || (can_install() && install_packages(&welcome).is_ok());
    if !installed {
        eprintln!("without {}, some stories are skipped", welcome.join(", "));
    }
    Ok(())
}

fn missing_packages(packages: &[(&'static str, &str, &[&str])]) -> Vec<&'static str> {
    packages
        .iter()
        .filter(|(_, program, args)| !command_succeeds(program, args))
        .map(|(package, ..)| *package)
        .collect()
}

fn install_packages(packages: &[&str]) -> anyhow::Result<()> {
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
    run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}

fn can_install() -> bool {
    command_output("id", &["-u"]).is_ok_and(|user| user == "0") && command_succeeds("apt-get", &["--version"])
}
