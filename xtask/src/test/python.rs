//! A Python of our own with the packages that the tests use.

use std::{fs, path::PathBuf, process::Command};

use anyhow::Context;

use crate::{
    root,
    steps::{output, run},
    target,
};

const REQUIREMENTS: &str = "e2e/requirements.txt";

/// Makes the virtual environment, anew when the requirements or Python changed, and gives its interpreter.
pub(crate) fn install() -> anyhow::Result<PathBuf> {
    let venv = target().join("venv");
    let python = venv.join("bin/python");
    let requirements = fs::read_to_string(root().join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let wanted = format!("{}\n{requirements}", output("python3", &["--version"])?);
    let stamp = venv.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    if venv.exists() {
        fs::remove_dir_all(&venv).with_context(|| format!("cannot remove {}", venv.display()))?;
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    run(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        REQUIREMENTS,
    ]))?;
    // Written last, so that an installation that broke off is not taken for a whole one.
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}
